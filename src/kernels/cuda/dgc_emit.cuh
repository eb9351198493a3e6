#pragma once

#include "kernels/cuda/dgc_block.cuh"

namespace dgc::cuda {

// Writes entries of one segment's part of a message, and takes what it writes out of v (and u).
class DgcEmitter {
 public:
  __device__ DgcEmitter(const DgcCompressArgs& a, const DgcSegment& s)
      : u_(a.momentum_correction && a.factor_masking ? a.u + s.offset : nullptr),
        v_(a.v + s.offset),
        fp32_(a.header.values == static_cast<uint16_t>(WireValues::fp32)) {
    std::byte* payload = a.message + kWireHeaderBytes;
    block_ends_ = reinterpret_cast<unsigned*>(payload + s.block_ends_at);
    offsets_ = reinterpret_cast<uint16_t*>(payload + s.offsets_at);
    values32_ = reinterpret_cast<float*>(payload + s.values_at);
    values16_ = reinterpret_cast<uint16_t*>(payload + s.values_at);
  }

  // The entry-th of the segment's k entries is the element with this index in the segment.
  __device__ void emit(unsigned entry, unsigned index) const {
    const float v = v_[index];
    const bool finite = magnitude_bits(v) < 0x7f800000u;
    offsets_[entry] = static_cast<uint16_t>(index % kDgcBlock);
    if (fp32_) {
      // A GPU and a CPU make different NaNs: one of them travels.
      values32_[entry] = v == v ? v : __uint_as_float(0x7fc00000u);
      v_[index] = 0;
    } else {
      const uint16_t half = half_to_send(v, finite);
      values16_[entry] = half;
      v_[index] = finite ? v - half_value(half) : 0.f;
    }
    if (u_ != nullptr) u_[index] = 0;
  }

  __device__ void end_block(int64_t block, unsigned entries_so_far) const { block_ends_[block] = entries_so_far; }

 private:
  // What travels as fp16 such that v - sent is exact (kernels/dgc_args.h).
  __device__ static uint16_t half_to_send(float v, bool finite) {
    constexpr float kHalfMax = 65504;
    if (!finite) return half_bits(v);  // already lost: let the weights show it
    if (fabsf(v) >= 0x1p29f) return 0;
    return half_bits(fminf(fmaxf(v, -kHalfMax), kHalfMax));
  }

  float* u_;  // null: momentum is not masked
  float* v_;
  bool fp32_;
  unsigned* block_ends_;
  uint16_t* offsets_;
  float* values32_;
  uint16_t* values16_;
};

}  // namespace dgc::cuda
