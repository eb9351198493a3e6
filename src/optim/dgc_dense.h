#pragma once

#include <optional>
#include <span>
#include <vector>

#include "optim/dgc_layout.h"
#include "optim/half_sum.h"
#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"

namespace dgc {

// The sum over all workers of the tensors that travel dense beside the compressed ones, in fp32 or in fp16.
class DgcDenseSum {
 public:
  // numel: of those tensors together, packed; may be 0.
  DgcDenseSum(const OptimizerContext&, int64_t numel, bool in_half);

  struct Source {
    const float* gradient = nullptr;  // an arena
    const float* scale = nullptr;     // device memory: the gradient's factor
    float* residual = nullptr;        // an arena: what rounding to fp16 takes away
    const StepControl* control = nullptr;
  };
  void pack(int local_worker, const DgcDense&, const Source&);  // queued
  // Collective; queued. Device memory [numel], valid until the next call; null where there are no such tensors.
  const float* run();

 private:
  Backend& backend_;
  std::optional<OrderedReduce> sum_;  // one or the other
  std::optional<HalfSum> half_;
  std::vector<Buffer> packed_;  // per local worker, for sum_
  std::vector<const float*> rows_;
};

}  // namespace dgc
