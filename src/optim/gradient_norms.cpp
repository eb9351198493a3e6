#include "optim/gradient_norms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dgc {

GradientNorms::GradientNorms(const OptimizerContext& context)
    : context_(context),
      mine_(static_cast<size_t>(context.local_workers)),
      squares_(mine_.size() * static_cast<size_t>(context.communicator.size())) {}

void GradientNorms::gather(std::span<float* const> gradients) {
  DGC_CHECK(gradients.size() == mine_.size(), "one gradient per local worker");
  for (size_t worker = 0; worker < mine_.size(); ++worker) {
    mine_[worker] = context_.backend.sum_squares({gradients[worker], {context_.layout.extent()}});
  }
  context_.communicator.all_gather(std::as_bytes(std::span(mine_)), std::as_writable_bytes(std::span(squares_)));
}

bool GradientNorms::finite() const {
  return std::ranges::all_of(squares_, [](double square) { return std::isfinite(square); });
}

double GradientNorms::root_mean_square() const {
  return std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0) / workers());
}

double GradientNorms::norm(int local_worker) const { return std::sqrt(mine_[static_cast<size_t>(local_worker)]); }

double clip_factor(double norm, double limit) { return std::min(1.0, limit / (norm + 1e-6)); }

}  // namespace dgc
