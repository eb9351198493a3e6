#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/dgc_args.h"
#include "tensor/half.h"

// A few segments with everything the DGC step needs, and the step once more, written as its definition says: accumulate
// in a plain loop, sort everything, take the first k.
namespace dgc::test {

struct Size {
  int64_t numel;
  int64_t k;
};

inline std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

constexpr float kSentinel = -77.25f;  // lies in the gaps between segments and must stay there

struct DgcCase {
  DgcCase(const std::vector<Size>& sizes, WireValues wire) : values(wire) {
    int64_t offset = 16;
    size_t at = 0;
    for (const Size& size : sizes) {
      DgcSegment s;
      s.offset = offset;
      s.numel = size.numel;
      s.k = size.k;
      s.block_ends_at = at;
      s.offsets_at = s.block_ends_at + 4 * static_cast<size_t>((size.numel + 65535) / 65536);
      s.values_at = (s.offsets_at + 2 * static_cast<size_t>(size.k) + 3) / 4 * 4;
      at = (s.values_at + 4 * static_cast<size_t>(size.k) + 16 + 15) / 16 * 16;  // a gap behind each
      offset += (size.numel + 16 + 15) / 16 * 16;
      segments.push_back(s);
    }
    payload.assign(at / 16, {0x5555555555555555u, 0x5555555555555555u});
    guesses.resize(sizes.size());
    for (auto* arena : {&g, &u, &v}) arena->assign(static_cast<size_t>(offset), kSentinel);
    for (const DgcSegment& s : segments) {
      for (auto* arena : {&g, &u, &v}) std::fill_n(arena->begin() + s.offset, s.numel, 0.f);
    }
  }

  DgcCompressArgs args(DgcCompressArgs rule) {
    rule.segments = segments;
    rule.guesses = guesses;
    rule.g = g.data();
    rule.u = u.data();
    rule.v = v.data();
    rule.values = values;
    rule.payload = reinterpret_cast<std::byte*>(payload.data());
    return rule;
  }

  WireValues values;
  std::vector<DgcSegment> segments;
  std::vector<DgcGuess> guesses;
  std::vector<float> g, u, v;
  std::vector<std::array<uint64_t, 2>> payload;
};

// What travels for v, and what is left of it.
inline float sent_as(float v, WireValues values, uint16_t& half) {
  half = 0;
  if (values == WireValues::fp32) return v;
  if (std::isfinite(v) && std::fabs(v) >= 0x1p29f) return 0;
  half = float_to_half(v);
  if (std::isfinite(v) && std::fabs(v) > 65504) half = v > 0 ? 0x7bff : 0xfbff;
  return half_to_float(half);
}

inline void reference_compress(DgcCase& c, const DgcCompressArgs& rule) {
  auto* payload = reinterpret_cast<std::byte*>(c.payload.data());
  for (const DgcSegment& s : c.segments) {
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
    for (int64_t b = 0; b * 65536 < s.numel; ++b) {
      const auto end = static_cast<uint32_t>(
          std::count_if(order.begin(), order.end(), [&](int64_t i) { return i < (b + 1) * 65536; }));
      std::memcpy(payload + s.block_ends_at + 4 * b, &end, 4);
    }
    for (size_t e = 0; e < order.size(); ++e) {
      const int64_t i = order[e];
      const auto offset = static_cast<uint16_t>(i % 65536);
      std::memcpy(payload + s.offsets_at + 2 * e, &offset, 2);
      uint16_t half = 0;
      const float sent = sent_as(v[i], c.values, half);
      if (c.values == WireValues::fp32) std::memcpy(payload + s.values_at + 4 * e, &sent, 4);
      if (c.values == WireValues::fp16) std::memcpy(payload + s.values_at + 2 * e, &half, 2);
      v[i] = std::isfinite(v[i]) ? v[i] - sent : 0.f;
      if (rule.momentum_correction && rule.factor_masking) u[i] = 0;
    }
  }
}

inline void fill_normal(DgcCase& c, std::vector<float>& arena, uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  for (const DgcSegment& s : c.segments) {
    for (int64_t i = 0; i < s.numel; ++i) arena[static_cast<size_t>(s.offset + i)] = normal(random);
  }
}

inline bool same_state(const DgcCase& a, const DgcCase& b) {
  return bits_of(a.u) == bits_of(b.u) && bits_of(a.v) == bits_of(b.v) && a.payload == b.payload;
}

}  // namespace dgc::test
