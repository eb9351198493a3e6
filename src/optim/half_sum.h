#pragma once

#include "optim/optimizer.h"

namespace dgc {

// Sums n numbers that workers have packed in fp16, in worker order and in fp32: all of them travel to every rank.
class HalfSum {
 public:
  HalfSum(const OptimizerContext& context, int64_t n);

  uint16_t* packed(int local_worker) const;  // [n], to be filled by dgc_pack_half
  const float* run();                        // collective; device memory [n], valid until the next call

 private:
  OptimizerContext context_;
  int64_t n_;
  Buffer mine_, all_, sum_;  // all_ is empty with one rank
};

}  // namespace dgc
