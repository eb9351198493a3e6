#include <cmath>
#include <limits>

#include "optim/dgc_exchange.h"
#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"

namespace dgc {
namespace {

class Dgc final : public Optimizer {
 public:
  Dgc(const OptimizerContext& context, const DgcOptions& options);

  uint64_t prepare(double sparsity) override;
  void step(const StepArgs&) override;
  void flush(const StepArgs&) override;
  StepBytes bytes() const override;
  std::vector<NamedState> state() const override;

 private:
  struct Worker {
    Arena v;
    std::optional<Arena> u;  // only with momentum correction
    Buffer guesses;          // one DgcGuess per segment
    Buffer packed;           // the dense tensors' gradient
  };

  void compress_all(const StepArgs&);
  void compress(int local, DgcCompressArgs rule);
  DgcApplyArgs exchange_messages(const StepArgs&);
  void find_scales(const StepArgs&);
  const float* scale(int local) const { return scales_.f32() + local; }

  OptimizerContext context_;
  DgcOptions options_;
  DgcExchange exchange_;
  std::vector<Worker> workers_;
  Arena momentum_;  // weight decay's where tensors are compressed, the ordinary one elsewhere
  Arena sum_;       // all zero between steps
  double sparsity_ = 0;
  uint64_t generation_ = 0;  // counts changes of the layout
  DgcLayout layout_;
  DgcTables tables_;
  Buffer scales_;  // a float per local worker
  std::optional<OrderedReduce> dense_;
  std::vector<const float*> packed_;  // per local worker
};

Dgc::Dgc(const OptimizerContext& context, const DgcOptions& options)
    : context_(context),
      options_(options),
      exchange_(context),
      momentum_(context.backend.device(), context.layout),
      sum_(context.backend.device(), context.layout),
      layout_(make_dgc_layout(context.layout, 0, options.values)),
      scales_(context.backend.device(), static_cast<size_t>(context.local_workers) * sizeof(float)) {
  const auto& device = context.backend.device();
  const std::vector<DgcGuess> no_guesses(layout_.segments.size());
  for (int local = 0; local < context.local_workers; ++local) {
    Worker worker{Arena(device, context.layout), std::nullopt, Buffer(device, no_guesses.size() * sizeof(DgcGuess)),
                  Buffer(device, static_cast<size_t>(layout_.dense_numel) * sizeof(float))};
    device->copy_in(worker.guesses.data(), no_guesses.data(), worker.guesses.bytes());
    if (options.momentum_correction) worker.u.emplace(device, context.layout);
    packed_.push_back(worker.packed.f32());
    workers_.push_back(std::move(worker));
  }
  if (layout_.dense_numel > 0) {
    dense_.emplace(context.backend, context.communicator, context.local_workers, layout_.dense_numel);
  }
}

uint64_t Dgc::prepare(double sparsity) {
  if (generation_ > 0 && sparsity == sparsity_) return generation_;
  layout_ = make_dgc_layout(context_.layout, sparsity, options_.values);
  tables_ = DgcTables(context_.backend.device(), layout_);
  exchange_.prepare(layout_);
  sparsity_ = sparsity;
  return ++generation_;
}

void Dgc::step(const StepArgs& args) {
  compress_all(args);
  DgcApplyArgs apply;
  {
    const Range range(context_.backend, "exchange");
    apply = exchange_messages(args);
    // What is not compressed takes an ordinary momentum step on the ordered sum of the workers' gradients.
    if (dense_) {
      apply.dense = tables_.dense();
      apply.dense_sum = dense_->run(packed_);
    }
  }
  apply.m = momentum_.data();
  apply.momentum = options_.sgd.momentum;
  apply.weight_decay = options_.sgd.weight_decay;
  apply.nesterov = options_.sgd.nesterov;
  apply.momentum_correction = options_.momentum_correction;
  const Range range(context_.backend, "apply");
  context_.backend.dgc_apply(apply);
}

void Dgc::compress_all(const StepArgs& args) {
  const Range range(context_.backend, "compress");
  find_scales(args);
  for (int local = 0; local < context_.local_workers; ++local) {
    const float* gradient = args.gradients[static_cast<size_t>(local)];
    DgcCompressArgs rule;
    rule.g = gradient;
    rule.control = args.record.control();
    rule.scale = scale(local);
    rule.momentum = options_.sgd.momentum;
    rule.nesterov = options_.sgd.nesterov;
    rule.momentum_correction = options_.momentum_correction;
    rule.factor_masking = options_.factor_masking;
    compress(local, rule);
    if (dense_) {
      context_.backend.dgc_pack(
          {tables_.dense(), gradient, workers_[static_cast<size_t>(local)].packed.f32(), scale(local)});
    }
  }
}

// Local clipping: gradient / N is clipped to clip_norm / sqrt(N), by its norm over all parameters (paper, section 3.2).
void Dgc::find_scales(const StepArgs& args) {
  static_assert(sizeof(WorkerShare) % sizeof(double) == 0);
  const auto workers = static_cast<double>(args.record.workers());
  const double infinity = std::numeric_limits<double>::infinity();
  context_.backend.clip_scales({.squares = &args.record.local(0)->square,
                                .stride = sizeof(WorkerShare) / sizeof(double),
                                .count = context_.local_workers,
                                .divisor = workers,
                                .limit = options_.sgd.clip_norm.value_or(infinity) / std::sqrt(workers),
                                .control = args.record.control(),
                                .scales = scales_.f32()});
}

// Plain SGD on what all workers sent, unless the caller adds momentum.
DgcApplyArgs Dgc::exchange_messages(const StepArgs& args) {
  DgcApplyArgs apply;
  apply.table = tables_.table();
  apply.messages = exchange_.run();
  apply.workers = args.record.workers();
  apply.header = layout_.wire.header(0);
  apply.control = args.record.control();
  apply.sum = sum_.data();
  apply.w = args.weights.data();
  return apply;
}

void Dgc::compress(int local, DgcCompressArgs rule) {
  Worker& worker = workers_[static_cast<size_t>(local)];
  rule.table = tables_.table();
  rule.guesses = static_cast<DgcGuess*>(worker.guesses.data());
  rule.u = worker.u ? worker.u->data() : nullptr;
  rule.v = worker.v.data();
  rule.header =
      layout_.wire.header(static_cast<uint32_t>(context_.communicator.rank() * context_.local_workers + local));
  rule.message = exchange_.message(local);
  context_.backend.dgc_compress(rule);
}

void Dgc::flush(const StepArgs& args) {
  prepare(0);
  for (int local = 0; local < context_.local_workers; ++local) {
    DgcCompressArgs rule;
    rule.g = sum_.data();  // zero: v goes out as it is and u stays
    rule.control = args.record.control();
    rule.momentum_correction = false;
    compress(local, rule);
  }
  context_.backend.dgc_apply(exchange_messages(args));
}

StepBytes Dgc::bytes() const { return {layout_.sent_bytes(), context_.layout.parameters() * int64_t{sizeof(float)}}; }

std::vector<NamedState> Dgc::state() const {
  std::vector<NamedState> all = {{"momentum", -1, &momentum_}};
  for (size_t local = 0; local < workers_.size(); ++local) {
    const Worker& worker = workers_[local];
    if (worker.u) all.push_back({"u", static_cast<int>(local), &*worker.u});
    all.push_back({"v", static_cast<int>(local), &worker.v});
  }
  return all;
}

}  // namespace

std::unique_ptr<Optimizer> make_dgc(const OptimizerContext& context, const DgcOptions& options) {
  return std::make_unique<Dgc>(context, options);
}

}  // namespace dgc
