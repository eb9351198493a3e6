#pragma once

#include <span>
#include <vector>

#include "optim/optimizer.h"

namespace dgc {

// Sums all workers' gradients with half the bytes of OrderedReduce: every worker's fp16 numbers go to where their shard
// is added up, in worker order and in fp32, and the sum comes back to all in fp16. What the first rounding takes away
// stays with the worker and is added to its next gradient. A shard belongs to one worker, which adds what it holds back
// there to the sum at once, and keeps what the second rounding takes away. It belongs to a worker and not to a rank, so
// that bits do not depend on how workers are spread over ranks.
class Fp16AllReduce {
 public:
  explicit Fp16AllReduce(const OptimizerContext&);

  struct Args {
    std::span<float* const> gradients;     // an arena per local worker
    const float* scale = nullptr;          // device memory: each gradient's factor
    const StepControl* control = nullptr;  // when it says skip, nothing is kept and the sum means nothing
  };
  // Collective; queued. An arena in device memory, valid until the next call.
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
  int64_t shard_, row_;  // numbers that a worker owns; of all workers
  std::vector<Arena> residuals_;
  std::vector<int64_t> own_first_, own_numel_;  // per local worker: its shard, without what lies behind the arena
  Buffer ranges_;                               // a DgcRange for the arena and for each local worker's shard
  Buffer one_;                                  // a factor
  Buffer packed_;                               // a row of halves per local worker
  Buffer rows_;                                 // the local shards of every worker; empty with one rank
  Buffer mine_sum_, mine_;                      // of the local shards: the sum, and in halves
  Buffer all_;                                  // the sum in halves; empty with one rank
  Buffer sum_;
  std::vector<const float*> packed_rows_;
};

}  // namespace dgc
