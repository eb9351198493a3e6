#include <cmath>

#include "optim/gradient_norms.h"
#include "optim/optimizer.h"

namespace dgc {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerContext& context, const SgdOptions& options)
      : context_(context),
        options_(options),
        norms_(context),
        sum_(context.backend.device(), context.layout),
        momentum_(context.backend.device(), context.layout) {}

  StepReport step(const StepArgs& args) override {
    const int64_t extent = context_.layout.extent();
    StepReport report;
    report.dense_bytes = context_.layout.parameters() * int64_t{sizeof(float)};
    norms_.gather(args.gradients);
    report.grad_norm = norms_.root_mean_square();
    report.skipped = !norms_.finite();
    if (report.skipped) return report;

    const_gradients_.assign(args.gradients.begin(), args.gradients.end());
    context_.communicator.all_reduce_ordered(const_gradients_, sum_.data(), static_cast<size_t>(extent));
    report.sent_bytes = report.dense_bytes;

    const double mean = 1.0 / norms_.workers();
    double scale = mean;
    if (options_.clip_norm) {
      const double norm = mean * std::sqrt(context_.backend.sum_squares({sum_.data(), {extent}}));
      scale *= clip_factor(norm, *options_.clip_norm);
    }
    SgdArgs sgd;
    sgd.numel = extent;
    sgd.lr = args.lr;
    sgd.momentum = options_.momentum;
    sgd.weight_decay = options_.weight_decay;
    sgd.gradient_scale = static_cast<float>(scale);
    sgd.nesterov = options_.nesterov;
    context_.backend.sgd_step(sgd, {sum_.data(), {extent}}, {momentum_.data(), {extent}},
                              {args.weights.data(), {extent}});
    return report;
  }

  std::vector<NamedState> state() const override { return {{"momentum", -1, &momentum_}}; }

 private:
  OptimizerContext context_;
  SgdOptions options_;
  GradientNorms norms_;
  Arena sum_;  // of all workers' gradients
  Arena momentum_;
  std::vector<const float*> const_gradients_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerContext& context, const SgdOptions& options) {
  return std::make_unique<Sgd>(context, options);
}

}  // namespace dgc
