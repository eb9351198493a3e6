#pragma once

#include <span>
#include <vector>

#include "optim/optimizer.h"

namespace dgc {

// The squared norms of all workers' gradients, known to every rank before anything is touched: so that all skip a step
// together when one of them is not finite.
class GradientNorms {
 public:
  explicit GradientNorms(const OptimizerContext&);

  void gather(std::span<float* const> gradients);  // collective; one small all-gather

  int workers() const { return static_cast<int>(squares_.size()); }  // N, over all ranks
  bool finite() const;
  double root_mean_square() const;
  double norm(int local_worker) const;

 private:
  OptimizerContext context_;
  std::vector<double> mine_;
  std::vector<double> squares_;  // in worker order
};

// What a vector of this norm is multiplied by so that its norm is at most `limit`: PyTorch's clip_grad_norm_.
double clip_factor(double norm, double limit);

}  // namespace dgc
