#pragma once

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/dgc_table.h"
#include "kernels/wire_codes.h"

// A few segments with everything the DGC step needs, in host memory; a backend's step on them; and the step once more,
// written as its definition says: accumulate in a plain loop, sort everything, take the first k.
namespace dgc::test {

struct Size {
  int64_t numel;
  int64_t k;
};

struct Rule {
  float scale = 1;
  float momentum = 0;
  bool nesterov = false;
  bool momentum_correction = true;
  bool factor_masking = true;
  float u_share = 0;
};

inline std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

constexpr float kSentinel = -77.25f;  // lies in the gaps between segments and must stay there

struct DgcCase {
  explicit DgcCase(const std::vector<Size>& sizes) {
    int64_t offset = 16;
    size_t at = 0;
    for (const Size& size : sizes) {
      DgcSegment s;
      s.offset = offset;
      s.numel = size.numel;
      s.k = size.k;
      s.first_block = segments.empty() ? 0 : segments.back().first_block + segments.back().blocks();
      s.block_ends_at = at;
      s.offsets_at = s.block_ends_at + 4 * static_cast<size_t>((size.numel + 65535) / 65536);
      s.values_at = (s.offsets_at + 2 * static_cast<size_t>(size.k) + 3) / 4 * 4;
      at = (s.values_at + 4 * static_cast<size_t>(size.k) + 16 + 15) / 16 * 16;  // a gap behind each
      offset += (size.numel + 16 + 15) / 16 * 16;
      segments.push_back(s);
      header.entries += static_cast<uint64_t>(size.k);
    }
    header.tensors = static_cast<uint32_t>(sizes.size());
    header.payload_bytes = at;
    message.assign(sizeof(WireHeader) + at, std::byte{0x55});
    guesses.resize(sizes.size());
    for (auto* arena : {&g, &u, &v}) arena->assign(static_cast<size_t>(offset), kSentinel);
    for (const DgcSegment& s : segments) {
      for (auto* arena : {&g, &u, &v}) std::fill_n(arena->begin() + s.offset, s.numel, 0.f);
    }
  }

  const std::byte* payload() const { return message.data() + sizeof(WireHeader); }

  uint64_t step = 5;
  int32_t skip = 0;
  WireHeader header;
  std::vector<DgcSegment> segments;
  std::vector<DgcGuess> guesses;
  std::vector<float> g, u, v;
  std::vector<std::byte> message;
};

// A vector on a device, and back.
template <typename T>
class Copy {
 public:
  Copy(Backend& backend, std::vector<T>& values)
      : values_(values), buffer_(backend.device(), values.size() * sizeof(T)) {
    buffer_.device().copy_in(buffer_.data(), values.data(), buffer_.bytes());
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  void fetch() const { buffer_.device().copy_out(values_.data(), buffer_.data(), buffer_.bytes()); }

 private:
  std::vector<T>& values_;
  Buffer buffer_;
};

inline DgcTableMemory table_of(Backend& backend, const std::vector<DgcSegment>& segments) {
  return {backend.device(), segments, 0};
}

// Where u and v start from, when that is not where they are left.
struct StartFrom {
  std::vector<float>* u = nullptr;
  std::vector<float>* v = nullptr;
};

inline void compress(Backend& backend, DgcCase& c, const Rule& rule, const StartFrom& start = {}) {
  std::vector<float> scales{rule.scale};
  std::vector<StepControl> controls(1);
  controls[0].step = c.step;
  controls[0].skip = c.skip;
  const DgcTableMemory table = table_of(backend, c.segments);
  const Copy guesses(backend, c.guesses);
  const Copy g(backend, c.g), u(backend, c.u), v(backend, c.v), scale(backend, scales);
  const Copy control(backend, controls);
  const Copy message(backend, c.message);
  const Copy u_from(backend, start.u != nullptr ? *start.u : c.u), v_from(backend, start.v != nullptr ? *start.v : c.v);
  DgcCompressArgs args;
  args.table = table.table();
  args.guesses = guesses.data();
  args.g = g.data();
  args.u = u.data();
  args.v = v.data();
  if (start.u != nullptr) args.u_from = u_from.data();
  if (start.v != nullptr) args.v_from = v_from.data();
  args.control = control.data();
  args.scale = rule.scale == 1 ? nullptr : scale.data();
  args.momentum = rule.momentum;
  args.nesterov = rule.nesterov;
  args.momentum_correction = rule.momentum_correction;
  args.factor_masking = rule.factor_masking;
  args.u_share = rule.u_share;
  args.header = c.header;
  args.message = message.data();
  backend.dgc_compress(args);
  u.fetch(), v.fetch(), guesses.fetch(), message.fetch();
  if (start.u != nullptr) u_from.fetch();
  if (start.v != nullptr) v_from.fetch();
}

// The header and checksum that belong to a payload, by tensor/wire_types.h and libxxhash.
inline void seal(DgcCase& c) {
  WireHeader header = c.header;
  header.step = c.step;
  std::vector<std::byte> hashed(40);
  std::memcpy(hashed.data(), &header, 40);
  for (size_t at = 0; at < header.payload_bytes; at += 1024) {
    const uint64_t piece = XXH64(c.payload() + at, std::min<size_t>(1024, header.payload_bytes - at), c.step);
    hashed.insert(hashed.end(), 8, std::byte{});
    std::memcpy(&hashed[hashed.size() - 8], &piece, 8);
  }
  header.checksum = XXH64(hashed.data(), hashed.size(), c.step);
  std::memcpy(c.message.data(), &header, sizeof(header));
}

struct Entry {
  int64_t element;  // of the arena
  float value;
};

// Of a sound message, in the arena's order.
inline std::vector<Entry> entries_of(const DgcCase& c) {
  std::vector<Entry> entries;
  for (const DgcSegment& s : c.segments) {
    uint32_t entry = 0;
    for (int64_t b = 0; b < s.blocks(); ++b) {
      uint32_t end = 0;
      std::memcpy(&end, c.payload() + s.block_ends_at + 4 * b, 4);
      for (; entry < end; ++entry) {
        uint16_t offset = 0;
        float value = 0;
        std::memcpy(&offset, c.payload() + s.offsets_at + 2 * entry, 2);
        std::memcpy(&value, c.payload() + s.values_at + 4 * entry, 4);
        entries.push_back({s.offset + b * 65536 + offset, value});
      }
    }
  }
  return entries;
}

inline void reference_accumulate(DgcCase& c, const DgcSegment& s, const Rule& rule) {
  float *u = &c.u[static_cast<size_t>(s.offset)], *v = &c.v[static_cast<size_t>(s.offset)];
  const float* g = &c.g[static_cast<size_t>(s.offset)];
  for (int64_t i = 0; i < s.numel; ++i) {
    const float scaled = rule.scale * g[i];
    if (!rule.momentum_correction) {
      v[i] = v[i] + scaled;
    } else if (rule.nesterov) {
      u[i] = rule.momentum * (u[i] + scaled);
      v[i] = (v[i] + u[i]) + scaled;
    } else {
      u[i] = std::fma(rule.momentum, u[i], scaled);
      v[i] = v[i] + u[i];
    }
  }
}

inline std::vector<int64_t> reference_selection(const float* v, const DgcSegment& s) {
  struct Ranked {
    uint32_t magnitude;
    int64_t index;
    bool operator<(const Ranked& o) const {
      return magnitude != o.magnitude ? magnitude > o.magnitude : index < o.index;
    }
  };
  std::vector<Ranked> ranking;
  for (int64_t i = 0; i < s.numel; ++i) ranking.push_back({std::bit_cast<uint32_t>(v[i]) << 1, i});
  std::sort(ranking.begin(), ranking.end());
  std::vector<int64_t> order;
  for (int64_t e = 0; e < s.k; ++e) order.push_back(ranking[static_cast<size_t>(e)].index);
  std::sort(order.begin(), order.end());
  return order;
}

inline void reference_compress(DgcCase& c, const Rule& rule) {
  if (c.skip != 0) return;
  std::byte* payload = c.message.data() + sizeof(WireHeader);
  for (const DgcSegment& s : c.segments) {
    reference_accumulate(c, s, rule);
    float *u = &c.u[static_cast<size_t>(s.offset)], *v = &c.v[static_cast<size_t>(s.offset)];
    const std::vector<int64_t> order = reference_selection(v, s);
    for (int64_t b = 0; b * 65536 < s.numel; ++b) {
      const auto end = static_cast<uint32_t>(
          std::count_if(order.begin(), order.end(), [&](int64_t i) { return i < (b + 1) * 65536; }));
      std::memcpy(payload + s.block_ends_at + 4 * b, &end, 4);
    }
    for (size_t e = 0; e < order.size(); ++e) {
      const int64_t i = order[e];
      const auto offset = static_cast<uint16_t>(i % 65536);
      std::memcpy(payload + s.offsets_at + 2 * e, &offset, 2);
      float value = rule.u_share == 0 ? v[i] : std::fma(rule.u_share, u[i], v[i]);
      if (std::isnan(value)) value = std::bit_cast<float>(kWireNan);
      std::memcpy(payload + s.values_at + 4 * e, &value, 4);
      v[i] = 0;
      if (rule.momentum_correction && rule.factor_masking) u[i] = 0;
    }
  }
  seal(c);
}

inline void fill_normal(DgcCase& c, std::vector<float>& arena, uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  for (const DgcSegment& s : c.segments) {
    for (int64_t i = 0; i < s.numel; ++i) arena[static_cast<size_t>(s.offset + i)] = normal(random);
  }
}

inline bool same_state(const DgcCase& a, const DgcCase& b) {
  return bits_of(a.u) == bits_of(b.u) && bits_of(a.v) == bits_of(b.v) && a.message == b.message;
}

}  // namespace dgc::test
