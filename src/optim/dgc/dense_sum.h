#pragma once

#include <optional>
#include <vector>

#include "optim/dgc/layout.h"
#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"

namespace dgc {

// The sum of n numbers over all workers, each packed in fp16 and added up in worker order and in fp32. Two ranks send
// each other all numbers. With more, every rank adds up the shard that it owns, and an all-gather brings the sums in
// fp32 to all: from four ranks on these are fewer bytes, and like those of OrderedReduce they do not grow with the
// ranks. The bits are the same.
class Fp16Sum {
 public:
  Fp16Sum(const OptimizerContext& context, int64_t n);

  uint16_t* packed(int local_worker) const;  // [n], to be filled by dgc_pack_half
  const float* run();                        // collective; device memory [n], valid until the next call

 private:
  void add(const Buffer& rows, int64_t floats, const Buffer& sum);

  OptimizerContext context_;
  int64_t floats_;                           // floats that hold a worker's packed numbers
  int64_t shard_ = 0;                        // of those floats, what one rank owns; 0 where nobody owns a shard
  Buffer mine_, rows_;                       // local workers' numbers; what arrives of all workers, empty with one rank
  Buffer shard_sum_, sum_;                   // shard_sum_ is empty where nobody owns a shard
  std::vector<const float*> local_workers_;  // mine_, by worker
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
  std::optional<OrderedReduce> sum_;  // set if the tensors travel in fp32
  std::optional<Fp16Sum> half_;       // set if they travel in fp16
  std::vector<Buffer> packed_;        // per local worker, for sum_
  std::vector<float*> rows_;
};

}  // namespace dgc
