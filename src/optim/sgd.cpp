#include <limits>
#include <optional>

#include "optim/fp16_all_reduce.h"
#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"

namespace dgc {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerContext& context, const SgdOptions& options, DenseValues values)
      : context_(context),
        options_(options),
        momentum_(context.backend.device(), context.layout, MemoryUse::momentum),
        clip_(context.backend.device(), sizeof(Clip)) {
    const Clip clip;
    context.backend.device()->copy_in(clip_.data(), &clip, sizeof(clip));
    if (values == DenseValues::fp16) {
      half_.emplace(context);
    } else {
      reduce_.emplace(context.backend, context.communicator, context.local_workers, context.layout.extent(),
                      MemoryUse::momentum);
    }
  }

  uint64_t prepare(double) override { return 0; }

  void step(const StepArgs& args) override {
    const int64_t extent = context_.layout.extent();
    float* const sum = half_ ? exchange_half(args) : exchange(args);
    const Range range(context_.backend, "apply");
    if (options_.clip_norm) context_.backend.sum_squares({sum, {extent}}, &clip()->square);
    // exchange_half() has divided the gradients by the number of workers and by the loss scale before the sum, because
    // residuals must not depend on the loss scale.
    ClipArgs rule = unclipped(args);
    if (half_) {
      rule.divisor = 1;
      rule.control = &clip()->unscaled;
    }
    rule.squares = &clip()->square;
    rule.limit = options_.clip_norm.value_or(rule.limit);
    context_.backend.clip_scales(rule);
    context_.backend.sgd_step({.numel = extent,
                               .momentum = static_cast<float>(options_.momentum),
                               .weight_decay = static_cast<float>(options_.weight_decay),
                               .nesterov = options_.nesterov,
                               .scale = &clip()->scale,
                               .control = args.record.control()},
                              {sum, {extent}}, {momentum_.data(), {extent}}, {args.weights.data(), {extent}});
  }

  StepBytes bytes() const override {
    const int64_t dense = context_.layout.parameters() * int64_t{sizeof(float)};
    return {half_ ? dense / 2 : dense, dense, Travel::dense};
  }

  std::vector<NamedState> state() const override {
    std::vector<NamedState> all = {{"momentum", -1, &momentum_}};
    for (int local = 0; half_ && local < context_.local_workers; ++local) {
      all.push_back({"residual", local, &half_->residual(local)});
    }
    return all;
  }

 private:
  // A Clip lies in device memory.
  struct Clip {
    double square = 0;     // squared norm of the sum of all workers' gradients
    StepControl unscaled;  // a control with a loss scale of 1
    float scale = 0;
  };
  Clip* clip() const { return static_cast<Clip*>(clip_.data()); }

  // The rule for the mean over all workers, without clipping. Without a limit the squares do not matter.
  ClipArgs unclipped(const StepArgs& args) const {
    return {.squares = &args.record.local(0)->square,
            .count = 1,
            .divisor = static_cast<double>(args.record.workers()),
            .limit = std::numeric_limits<double>::infinity(),
            .control = args.record.control(),
            .scales = &clip()->scale};
  }

  float* exchange(const StepArgs& args) {
    const Range range(context_.backend, "exchange");
    const_gradients_.assign(args.gradients.begin(), args.gradients.end());
    return reduce_->run(const_gradients_);
  }

  float* exchange_half(const StepArgs& args) {
    const Range range(context_.backend, "exchange");
    context_.backend.clip_scales(unclipped(args));
    return half_->run({args.gradients, &clip()->scale, args.record.control()});
  }

  OptimizerContext context_;
  SgdOptions options_;
  // Exactly one of these two is set.
  std::optional<OrderedReduce> reduce_;
  std::optional<Fp16AllReduce> half_;
  Arena momentum_;
  Buffer clip_;  // one Clip
  std::vector<const float*> const_gradients_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerContext& context, const SgdOptions& options, DenseValues values) {
  return std::make_unique<Sgd>(context, options, values);
}

}  // namespace dgc
