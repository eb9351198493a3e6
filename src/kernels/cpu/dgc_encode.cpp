#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/wire_message.h"
#include "kernels/wire_codes.h"

// Turns the canonical message into the one that travels, with a task per segment. This is a thousandth of the step's
// work.
namespace dgc {
namespace {

// One segment in both messages. The canonical message was made by this process, so its indices are sound.
struct EncodedPart {
  const DgcSegment& segment;
  const DgcCode& code;
  std::byte* payload;
  std::byte* coded;

  template <typename T>
  T* from(uint64_t at) const {
    return reinterpret_cast<T*>(payload + at);
  }
  template <typename T>
  T* to(uint64_t at) const {
    return reinterpret_cast<T*>(coded + at);
  }
  // Calls body(number of the entry, its index) in index order.
  template <typename Body>
  void each_entry(const Body& body) const {
    const auto* ends = from<const uint32_t>(segment.block_ends_at);
    const auto* offsets = from<const uint16_t>(segment.offsets_at);
    int64_t entry = 0;
    for (int64_t b = 0; b < segment.blocks(); ++b) {
      for (; entry < ends[b]; ++entry) body(entry, b * kDgcBlock + offsets[entry]);
    }
  }
};

void put_bits(uint32_t* words, int64_t at, uint32_t bits) {
  const uint64_t both = static_cast<uint64_t>(bits) << at % 32;
  words[at / 32] |= static_cast<uint32_t>(both);
  if (both >> 32 != 0) words[at / 32 + 1] |= static_cast<uint32_t>(both >> 32);
}

// Writes into memory that is zero.
void encode_indices(const EncodedPart& part, WireIndices indices) {
  const DgcSegment& s = part.segment;
  const DgcCode& code = part.code;
  switch (indices) {
    case WireIndices::block16: {
      std::copy_n(part.from<uint32_t>(s.block_ends_at), s.blocks(), part.to<uint32_t>(code.high_at));
      std::copy_n(part.from<uint16_t>(s.offsets_at), s.k, part.to<uint16_t>(code.low_at));
      return;
    }
    case WireIndices::int32: {
      auto* words = part.to<uint32_t>(code.low_at);
      part.each_entry([&](int64_t entry, int64_t index) { words[entry] = static_cast<uint32_t>(index); });
      return;
    }
    case WireIndices::run16: {
      auto* word = part.to<uint16_t>(code.low_at);
      int64_t next = 0;  // the element behind the last entry
      part.each_entry([&](int64_t, int64_t index) {
        int64_t run = index - next;
        for (; run >= kLongRun; run -= kLongRun) *word++ = kLongRun;
        *word++ = static_cast<uint16_t>(run);
        next = index + 1;
      });
      return;
    }
    case WireIndices::rice: {
      auto* high = part.to<uint32_t>(code.high_at);
      auto* low = part.to<uint32_t>(code.low_at);
      const int b = code.low_bits;
      part.each_entry([&](int64_t entry, int64_t index) {
        put_bits(high, ((index - entry) >> b) + entry, 1);
        put_bits(low, entry * b, low_bits_of(static_cast<uint32_t>(index - entry), b));
      });
      return;
    }
  }
}

float scale_of(const float* values, int64_t k) {
  float largest = 0;
  for (int64_t i = 0; i < k; ++i) {
    if (wire_finite(values[i])) largest = std::max(largest, std::fabs(values[i]));
  }
  return int8_scale(largest);
}

void encode_values(const EncodedPart& part, WireValues format, float* v) {
  auto* values = part.from<float>(part.segment.values_at);
  float scale = 0;
  if (has_scale(format)) {
    scale = scale_of(values, part.segment.k);
    std::memcpy(part.coded + part.code.scale_at, &scale, sizeof(scale));
  }
  const auto bytes = static_cast<size_t>(wire_value_bytes(format));
  std::byte* to = part.coded + part.code.values_at;
  part.each_entry([&](int64_t entry, int64_t index) {
    const uint32_t code = value_code(format, values[entry], scale);
    const float sent = value_of(format, code, scale);
    std::memcpy(to, &code, bytes);  // the lowest bytes come first
    to += bytes;
    if (wire_finite(values[entry])) v[index] = values[entry] - sent;
    values[entry] = sent;
  });
}

}  // namespace

void encode_message(const DgcEncodeArgs& args, [[maybe_unused]] int threads) {
  if (args.control->skip != 0) return;
  std::byte* payload = args.message + kWireHeaderBytes;
  std::byte* coded = args.coded + kWireHeaderBytes;
  std::memset(coded, 0, args.codes.payload_bytes);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int32_t i = 0; i < args.table.count; ++i) {
    const EncodedPart part{args.table.segments[i], args.codes.codes[i], payload, coded};
    encode_indices(part, args.codes.format.indices);
    encode_values(part, args.codes.format.values, args.v + part.segment.offset);
  }
  seal_message(args.message, args.header, args.control->step);
  std::memcpy(args.coded, args.message, kWireHeaderBytes);
}

void CpuBackend::dgc_encode(const DgcEncodeArgs& args) { encode_message(args, threads_); }

}  // namespace dgc
