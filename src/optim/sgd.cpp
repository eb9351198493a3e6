#include <limits>

#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"

namespace dgc {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerContext& context, const SgdOptions& options)
      : context_(context),
        options_(options),
        reduce_(context.backend, context.communicator, context.local_workers, context.layout.extent()),
        momentum_(context.backend.device(), context.layout),
        clip_(context.backend.device(), sizeof(Clip)) {}

  uint64_t prepare(double) override { return 0; }

  void step(const StepArgs& args) override {
    const int64_t extent = context_.layout.extent();
    const_gradients_.assign(args.gradients.begin(), args.gradients.end());
    float* sum = nullptr;
    {
      const Range range(context_.backend, "exchange");
      sum = reduce_.run(const_gradients_);
    }
    const Range range(context_.backend, "apply");

    auto* const clip = static_cast<Clip*>(clip_.data());
    if (options_.clip_norm) context_.backend.sum_squares({sum, {extent}}, &clip->square);
    context_.backend.clip_scales({.squares = &clip->square,
                                  .count = 1,
                                  .divisor = static_cast<double>(args.record.workers()),
                                  .limit = options_.clip_norm.value_or(std::numeric_limits<double>::infinity()),
                                  .control = args.record.control(),
                                  .scales = &clip->scale});
    context_.backend.sgd_step({.numel = extent,
                               .momentum = options_.momentum,
                               .weight_decay = options_.weight_decay,
                               .nesterov = options_.nesterov,
                               .scale = &clip->scale,
                               .control = args.record.control()},
                              {sum, {extent}}, {momentum_.data(), {extent}}, {args.weights.data(), {extent}});
  }

  StepBytes bytes() const override {
    const int64_t dense = context_.layout.parameters() * int64_t{sizeof(float)};
    return {dense, dense};
  }

  std::vector<NamedState> state() const override { return {{"momentum", -1, &momentum_}}; }

 private:
  struct Clip {
    double square;  // of the sum of all workers' gradients
    float scale;
  };

  OptimizerContext context_;
  SgdOptions options_;
  OrderedReduce reduce_;
  Arena momentum_;
  Buffer clip_;  // one Clip
  std::vector<const float*> const_gradients_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerContext& context, const SgdOptions& options) {
  return std::make_unique<Sgd>(context, options);
}

}  // namespace dgc
