#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "dist/wire.h"
#include "tensor/half.h"
#include "tests/kernels/dgc_case.h"
#include "tests/support/all_of.h"

// Canonical messages with chosen entries, the same messages in every other form, written once more from the words of
// docs/wire_format.md, and a backend's encoding and decoding of them.
namespace dgc::test {

struct Entries {
  std::vector<int64_t> indices;  // increasing
  std::vector<float> values;
};

inline std::vector<WireFormat> all_formats() {
  std::vector<WireFormat> formats;
  for (const auto values : all_of<WireValues>()) {
    for (const auto indices : all_of<WireIndices>()) {
      formats.push_back({values, indices});
    }
  }
  return formats;
}

// One worker's message: as dgc_compress leaves it, and room for it as it travels.
struct CodeCase : DgcCase {
  CodeCase(const std::vector<Size>& sizes, WireFormat wire) : DgcCase(sizes), format(wire) {
    std::vector<WireTensor> tensors;
    for (const Size& size : sizes) tensors.push_back({.numel = size.numel, .k = size.k});
    layout = WireLayout(tensors, wire);
    for (const WireTensor& t : layout.tensors()) {
      codes.push_back({t.high_at, t.scale_at, t.low_at, t.values_at, t.words, chunks, t.low_bits});
      chunks += DgcCode::chunks_of(t.words);
    }
    header.values = wire.values;
    header.indices = wire.indices;
    coded.assign(layout.message_bytes(), std::byte{0x55});
    std::fill(message.begin() + sizeof(WireHeader), message.end(), std::byte{});
  }

  void set(size_t segment, const Entries& entries) {
    const DgcSegment& s = segments[segment];
    std::byte* payload = message.data() + sizeof(WireHeader);
    for (int64_t b = 0; b < s.blocks(); ++b) {
      const auto end = static_cast<uint32_t>(
          std::count_if(entries.indices.begin(), entries.indices.end(), [&](int64_t i) { return i / 65536 <= b; }));
      std::memcpy(payload + s.block_ends_at + 4 * b, &end, 4);
    }
    for (size_t e = 0; e < entries.indices.size(); ++e) {
      const auto offset = static_cast<uint16_t>(entries.indices[e] % 65536);
      std::memcpy(payload + s.offsets_at + 2 * e, &offset, 2);
    }
    std::memcpy(payload + s.values_at, entries.values.data(), entries.values.size() * sizeof(float));
  }

  Entries get(size_t segment) const {
    const DgcSegment& s = segments[segment];
    Entries entries{{}, std::vector<float>(static_cast<size_t>(s.k))};
    int64_t entry = 0;
    for (int64_t b = 0; b < s.blocks(); ++b) {
      uint32_t end = 0;
      std::memcpy(&end, payload() + s.block_ends_at + 4 * b, 4);
      for (; entry < end; ++entry) {
        uint16_t offset = 0;
        std::memcpy(&offset, payload() + s.offsets_at + 2 * entry, 2);
        entries.indices.push_back(b * 65536 + offset);
      }
    }
    std::memcpy(entries.values.data(), payload() + s.values_at, entries.values.size() * sizeof(float));
    return entries;
  }

  DgcCodes codes_on(const DgcCode* device) const { return {device, format, layout.payload_bytes(), chunks}; }

  WireFormat format;
  WireLayout layout;
  std::vector<DgcCode> codes;
  int64_t chunks = 0;
  std::vector<std::byte> coded;
};

// What a worker does between dgc_compress and the exchange.
inline void encode(Backend& backend, CodeCase& c) {
  std::vector<StepControl> controls(1);
  controls[0].step = c.step;
  controls[0].skip = c.skip;
  const DgcTableMemory table = table_of(backend, c.segments);
  const Copy codes(backend, c.codes);
  const Copy control(backend, controls);
  const Copy v(backend, c.v);
  const Copy message(backend, c.message), coded(backend, c.coded);
  DgcEncodeArgs args;
  args.table = table.table();
  args.codes = c.codes_on(codes.data());
  args.control = control.data();
  args.v = v.data();
  args.header = c.header;
  args.message = message.data();
  args.coded = coded.data();
  backend.dgc_encode(args);
  v.fetch(), message.fetch(), coded.fetch();
}

// What a rank does with what came: canonical messages of all workers. `one` gives the layout.
inline std::vector<std::byte> decode(Backend& backend, const CodeCase& one, std::vector<std::byte> came,
                                     StepControl control = {}) {
  const size_t workers = came.size() / one.coded.size();
  std::vector<std::byte> messages(workers * one.message.size(), std::byte{0x77});
  std::vector<StepControl> controls{control};
  std::vector<DgcCode> codes = one.codes;
  const DgcTableMemory table = table_of(backend, one.segments);
  const Copy on_codes(backend, codes);
  const Copy on_control(backend, controls);
  const Copy from(backend, came), to(backend, messages);
  DgcDecodeArgs args;
  args.table = table.table();
  args.codes = one.codes_on(on_codes.data());
  args.control = on_control.data();
  args.payload_bytes = one.header.payload_bytes;
  args.workers = static_cast<int32_t>(workers);
  args.coded = from.data();
  args.messages = to.data();
  backend.dgc_decode(args);
  to.fetch();
  return messages;
}

// --- The same by the words of the specification, on strings of '0' and '1'.

inline void put(std::vector<std::byte>& to, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to.at(at + i) = static_cast<std::byte>(value >> 8 * i);
}

inline void put_stream(std::vector<std::byte>& to, size_t at, const std::string& bits) {
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == '1') to.at(at + i / 8) |= std::byte(1 << i % 8);
  }
}

inline void reference_indices(CodeCase& c, size_t segment) {
  const WireTensor& t = c.layout.tensors()[segment];
  const std::vector<int64_t> indices = c.get(segment).indices;
  const size_t high = sizeof(WireHeader) + t.high_at, low = sizeof(WireHeader) + t.low_at;
  std::string quotients, remainders;
  size_t word = 0;
  int64_t next = 0, group = 0;
  for (size_t e = 0; e < indices.size(); ++e) {
    const int64_t index = indices[e];
    if (c.format.indices == WireIndices::block16) {
      put(c.coded, low + 2 * e, static_cast<uint64_t>(index % 65536), 2);
    } else if (c.format.indices == WireIndices::int32) {
      put(c.coded, low + 4 * e, static_cast<uint64_t>(index), 4);
    } else if (c.format.indices == WireIndices::run16) {
      int64_t zeros = index - next;
      for (; zeros > 65534; zeros -= 65535) put(c.coded, low + 2 * word++, 65535, 2);
      put(c.coded, low + 2 * word++, static_cast<uint64_t>(zeros), 2);
      next = index + 1;
    } else {
      const int64_t size = int64_t{1} << t.low_bits;
      const int64_t zeros = index - static_cast<int64_t>(e);
      for (; group < zeros / size; ++group) quotients += '0';
      quotients += '1';
      for (int64_t bit = 1; bit < size; bit *= 2) remainders += zeros % size / bit % 2 == 1 ? '1' : '0';
    }
  }
  put_stream(c.coded, high, quotients);
  put_stream(c.coded, low, remainders);
  if (c.format.indices != WireIndices::block16) return;
  for (int64_t b = 0; b * 65536 < t.numel; ++b) {
    const auto before = std::count_if(indices.begin(), indices.end(), [&](int64_t i) { return i < (b + 1) * 65536; });
    put(c.coded, high + 4 * static_cast<size_t>(b), static_cast<uint64_t>(before), 4);
  }
}

inline float reference_scale(const std::vector<float>& values) {
  float largest = 0;
  for (const float v : values) largest = std::isfinite(v) ? std::max(largest, std::fabs(v)) : largest;
  int exponent = 0;
  const double wanted = std::frexp(largest / 127.f, &exponent);
  return static_cast<float>(std::clamp(std::ldexp(std::ceil(std::ldexp(wanted, 8)), exponent - 8), 0x1p-126, 0x1p120));
}

// The code of v, and the number that it says.
inline uint64_t reference_value(WireValues values, float v, float scale, float& sent) {
  const bool finite = std::isfinite(v);
  sent = v;
  if (std::isnan(v) || (!finite && values == WireValues::int8)) sent = std::bit_cast<float>(0x7fc00000u);
  switch (values) {
    case WireValues::fp32:
      return std::bit_cast<uint32_t>(sent);
    case WireValues::fp16:
      if (finite) sent = std::fabs(v) >= 0x1p29f ? 0.f : std::clamp(v, -65504.f, 65504.f);
      sent = half_to_float(float_to_half(sent));
      return float_to_half(sent);
    case WireValues::bf16:
      if (finite && v != 0) {
        const double step = std::ldexp(1.0, std::max(std::ilogb(v) - 7, -133));
        sent = static_cast<float>(std::clamp(std::nearbyint(v / step) * step, -0x1.fep127, 0x1.fep127));
        if (sent == 0) sent = std::copysign(0.f, v);
      }
      return std::bit_cast<uint32_t>(sent) >> 16;
    case WireValues::int8: {
      if (!finite) return 0x80;
      const auto steps = static_cast<int>(std::clamp(std::nearbyint(v / scale), -127.f, 127.f));
      sent = static_cast<float>(steps) * scale;
      return static_cast<uint64_t>(steps) & 0xff;
    }
  }
  throw std::logic_error("values of an unknown kind");
}

inline void reference_values(CodeCase& c, size_t segment) {
  const WireTensor& t = c.layout.tensors()[segment];
  Entries entries = c.get(segment);
  const size_t bytes = c.format.values == WireValues::fp32 ? 4 : c.format.values == WireValues::int8 ? 1 : 2;
  const float scale = c.format.values == WireValues::int8 ? reference_scale(entries.values) : 0;
  if (bytes == 1) put(c.coded, sizeof(WireHeader) + t.scale_at, std::bit_cast<uint32_t>(scale), 4);
  for (size_t e = 0; e < entries.values.size(); ++e) {
    float& value = entries.values[e];
    float sent = 0;
    put(c.coded, sizeof(WireHeader) + t.values_at + e * bytes, reference_value(c.format.values, value, scale, sent),
        bytes);
    float& v = c.v[static_cast<size_t>(c.segments[segment].offset + entries.indices[e])];
    if (std::isfinite(value)) v = value - sent;
    value = sent;
  }
  c.set(segment, entries);
}

inline void reference_encode(CodeCase& c) {
  if (c.skip != 0) return;
  std::fill(c.coded.begin() + sizeof(WireHeader), c.coded.end(), std::byte{});
  for (size_t i = 0; i < c.segments.size(); ++i) {
    reference_indices(c, i);
    reference_values(c, i);
  }
  seal(c);
  std::copy_n(c.message.begin(), sizeof(WireHeader), c.coded.begin());
}

}  // namespace dgc::test
