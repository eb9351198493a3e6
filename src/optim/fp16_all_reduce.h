#pragma once

#include <span>
#include <vector>

#include "optim/optimizer.h"

namespace dgc {

// Sums all workers' gradients with half the bytes of OrderedReduce: every worker sends each shard of its gradient in
// fp16 to the worker that owns the shard, which adds up what arrives, in worker order and in fp32, and sends the sum to
// all in fp16. The error of the first rounding stays with the worker and is added to its next gradient. An owner adds
// its own errors in its shard to the sum at once, and keeps the error of the second rounding instead. Owners are
// workers and not ranks, so that the bits do not depend on how workers are spread over ranks.
class Fp16AllReduce {
 public:
  explicit Fp16AllReduce(const OptimizerContext&);

  struct Args {
    std::span<float* const> gradients;     // an arena per local worker
    const float* scale = nullptr;          // device memory: the factor of all gradients
    const StepControl* control = nullptr;  // if it says skip, residuals do not change and the sum means nothing
  };
  // Collective; queued. Returns the sum, an arena in device memory that is valid until the next call.
  float* run(const Args&);

  // What a local worker holds back; a checkpoint keeps it.
  const Arena& residual(int local_worker) const { return residuals_[static_cast<size_t>(local_worker)]; }

 private:
  int64_t extent() const { return context_.layout.extent(); }
  uint16_t* packed(int local_worker) const { return static_cast<uint16_t*>(packed_.data()) + local_worker * row_; }
  DgcDense range(int64_t which) const;
  const void* gather_shards();
  void pack_sums(const StepControl* control);

  OptimizerContext context_;
  int64_t shard_, row_;  // numbers of one shard; numbers of all workers' shards
  std::vector<Arena> residuals_;
  std::vector<int64_t> own_first_, own_numel_;  // per local worker: the part of its shard within the arena
  Buffer ranges_;                               // a DgcRange for the arena and for each local worker's shard
  Buffer one_;                                  // the factor 1
  Buffer packed_;                               // a row of halves per local worker
  Buffer rows_;                                 // the local shards of every worker; empty with one rank
  Buffer mine_sum_, mine_;                      // the sum of the local shards, in fp32 and in fp16
  Buffer all_;                                  // the sum of all shards in fp16; empty with one rank
  Buffer sum_;
  std::vector<const float*> packed_rows_;
};

}  // namespace dgc
