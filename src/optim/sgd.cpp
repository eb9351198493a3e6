#include <limits>
#include <optional>

#include "optim/fp16_all_reduce.h"
#include "optim/momentum_step.h"
#include "optim/ordered_reduce.h"

namespace dgc {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerContext& context, const SgdOptions& options, DenseValues values)
      : context_(context), momentum_step_(context.backend, context.layout, options) {
    if (values == DenseValues::fp16) {
      half_.emplace(context);
    } else {
      reduce_.emplace(context.backend, context.communicator, context.local_workers, context.layout.extent(),
                      MemoryUse::momentum);
    }
  }

  uint64_t prepare(double) override { return 0; }

  void step(const StepArgs& args) override {
    float* const sum = half_ ? exchange_half(args) : exchange(args);
    const Range range(context_.backend, "apply");
    MomentumStep::Args step{.gradient = sum,
                            .divisor = workers(args),
                            .scaled = args.record.control(),
                            .control = args.record.control(),
                            .weights = args.weights.data()};
    if (sum == args.gradients[0]) step.square = &args.record.local(0)->square;  // one worker's, which is judged already
    // exchange_half() has divided the gradients by the number of workers and by the loss scale before the sum, because
    // residuals must not depend on the loss scale.
    if (half_) {
      step.divisor = 1;
      step.scaled = &half_->scaling()->unscaled;
    }
    momentum_step_.run(step);
  }

  StepBytes bytes() const override {
    const int64_t dense = context_.layout.parameters() * int64_t{sizeof(float)};
    return {half_ ? dense / 2 : dense, dense, Travel::dense};
  }

  std::vector<NamedState> state() const override {
    std::vector<NamedState> all;
    if (const Arena* momentum = momentum_step_.momentum()) all.push_back({"momentum", -1, momentum});
    for (int local = 0; half_ && local < context_.local_workers; ++local) {
      all.push_back({"residual", local, &half_->reduce.residual(local)});
    }
    return all;
  }

 private:
  // Lies in device memory.
  struct Scaling {
    StepControl unscaled;  // a control with a loss scale of 1
    float scale = 0;       // of the gradients before their sum
  };

  struct Half {
    explicit Half(const OptimizerContext& context)
        : reduce(context), memory(context.backend.device(), sizeof(Scaling)) {
      const Scaling scaling;
      context.backend.device()->copy_in(memory.data(), &scaling, sizeof(scaling));
    }
    Scaling* scaling() const { return static_cast<Scaling*>(memory.data()); }

    Fp16AllReduce reduce;
    Buffer memory;  // one Scaling
  };

  static double workers(const StepArgs& args) { return static_cast<double>(args.record.workers()); }

  float* exchange(const StepArgs& args) {
    const Range range(context_.backend, "exchange");
    return reduce_->run(args.gradients);
  }

  float* exchange_half(const StepArgs& args) {
    const Range range(context_.backend, "exchange");
    float* const scale = &half_->scaling()->scale;
    // Nothing is clipped here, so the squares do not matter.
    context_.backend.clip_scales({.squares = &args.record.local(0)->square,
                                  .count = 1,
                                  .divisor = workers(args),
                                  .limit = std::numeric_limits<double>::infinity(),
                                  .control = args.record.control(),
                                  .scales = scale});
    return half_->reduce.run({args.gradients, scale, args.record.control()});
  }

  OptimizerContext context_;
  MomentumStep momentum_step_;
  // Exactly one of these two is set.
  std::optional<OrderedReduce> reduce_;
  std::optional<Half> half_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerContext& context, const SgdOptions& options, DenseValues values) {
  return std::make_unique<Sgd>(context, options, values);
}

}  // namespace dgc
