#pragma once

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/wire_codes.h"

namespace dgc::cuda {

// Writes the entries of one segment's part of a message, and sets v (with factor masking also u) to zero there.
class DgcEmitter {
 public:
  __device__ DgcEmitter(const DgcCompressArgs& a, const DgcSegment& s)
      : u_(a.momentum_correction && a.factor_masking ? a.u + s.offset : nullptr),
        u_share_(a.u_share),
        v_(a.v + s.offset) {
    std::byte* payload = a.message + kWireHeaderBytes;
    block_ends_ = reinterpret_cast<unsigned*>(payload + s.block_ends_at);
    offsets_ = reinterpret_cast<uint16_t*>(payload + s.offsets_at);
    values_ = reinterpret_cast<float*>(payload + s.values_at);
  }

  // What is sent of the segment's element `index`, of which v is `v`.
  __device__ float value(unsigned index, float v) const { return u_share_ == 0 ? v : fmaf(u_share_, u_[index], v); }
  __device__ float value(unsigned index) const { return value(index, v_[index]); }

  // Writes the segment's element `index`, of which `value` is sent, as the segment's entry number `entry`.
  __device__ void write(unsigned entry, unsigned index, float value) const {
    offsets_[entry] = static_cast<uint16_t>(index % kDgcBlock);
    values_[entry] = wire_value(value);
    v_[index] = 0;
    if (u_ != nullptr) u_[index] = 0;
  }

  __device__ void end_block(int64_t block, unsigned entries_so_far) const { block_ends_[block] = entries_so_far; }

 private:
  float* u_;  // null: momentum is not masked
  float u_share_;
  float* v_;
  unsigned* block_ends_;
  uint16_t* offsets_;
  float* values_;
};

}  // namespace dgc::cuda
