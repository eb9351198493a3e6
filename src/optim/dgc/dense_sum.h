#pragma once

#include <optional>
#include <vector>

#include "optim/dgc/layout.h"
#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"

namespace dgc {

// The sum of n numbers over all workers, each packed in fp16: an all-gather brings every worker's numbers to every
// rank, which adds them up in worker order and in fp32.
class Fp16GatherSum {
 public:
  Fp16GatherSum(const OptimizerContext& context, int64_t n);

  uint16_t* packed(int local_worker) const;  // [n], to be filled by dgc_pack_half
  const float* run();                        // collective; device memory [n], valid until the next call

 private:
  OptimizerContext context_;
  int64_t n_;
  Buffer mine_, all_, sum_;  // all_ is empty with one rank
};

// The sum over all workers of the tensors that travel dense beside the compressed ones, in fp32 or in fp16.
class DenseSum {
 public:
  // numel: number of elements of those tensors together; may be 0.
  DenseSum(const OptimizerContext&, int64_t numel, SmallTensors);

  struct Source {
    const float* gradient = nullptr;  // an arena
    const float* scale = nullptr;     // device memory: the gradient's factor
    float* residual = nullptr;        // an arena: the errors of rounding to fp16
    const StepControl* control = nullptr;
  };
  void pack(int local_worker, const DgcDense&, const Source&);  // queued
  // What pack() made of tensors that travel in fp32: device memory [numel]; null if numel is 0.
  const float* packed(int local_worker) const { return sum_ ? rows_[static_cast<size_t>(local_worker)] : nullptr; }
  // Collective; queued. Returns device memory [numel], valid until the next call; null if numel is 0.
  const float* run();

 private:
  Backend& backend_;
  std::optional<OrderedReduce> sum_;   // set if the tensors travel in fp32
  std::optional<Fp16GatherSum> half_;  // set if they travel in fp16
  std::vector<Buffer> packed_;         // per local worker, for sum_
  std::vector<float*> rows_;
};

}  // namespace dgc
