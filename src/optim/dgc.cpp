#include <cmath>

#include "optim/dgc_exchange.h"
#include "optim/gradient_norms.h"
#include "optim/optimizer.h"

namespace dgc {
namespace {

// The largest message first allocates the most, so the layout of the running sparsity is kept until it changes.
class Dgc final : public Optimizer {
 public:
  Dgc(const OptimizerContext& context, const DgcOptions& options);

  StepReport step(const StepArgs&) override;
  StepReport flush(const StepArgs&) override;
  std::vector<NamedState> state() const override;

 private:
  struct Worker {
    Arena v;
    std::optional<Arena> u;  // only with momentum correction
    std::vector<DgcGuess> guesses;
  };

  void use_sparsity(double sparsity);
  void compress(int local, const DgcCompressArgs& rule);
  DgcApplyArgs exchange_messages(const StepArgs&);
  void exchange_dense(const StepArgs&, std::span<const double> scales);
  double scale_of(int local) const;
  StepReport report() const;

  OptimizerContext context_;
  DgcOptions options_;
  GradientNorms norms_;
  DgcExchange exchange_;
  std::vector<Worker> workers_;
  Arena momentum_;  // weight decay's where tensors are compressed, the ordinary one elsewhere
  Arena sum_;       // all zero between steps
  double sparsity_ = -1;
  DgcLayout layout_;
  std::vector<double> scales_;
  std::vector<Buffer> packed_;  // the dense tensors' gradients, one buffer per local worker
  std::vector<const float*> packed_pointers_;
  Buffer packed_sum_;
};

Dgc::Dgc(const OptimizerContext& context, const DgcOptions& options)
    : context_(context),
      options_(options),
      norms_(context),
      exchange_(context),
      momentum_(context.backend.device(), context.layout),
      sum_(context.backend.device(), context.layout),
      scales_(static_cast<size_t>(context.local_workers)) {
  const auto& device = context.backend.device();
  layout_ = make_dgc_layout(context.layout, 0, options.values);
  const size_t dense_bytes = static_cast<size_t>(layout_.dense_numel) * sizeof(float);
  for (int local = 0; local < context.local_workers; ++local) {
    Worker worker{Arena(device, context.layout), std::nullopt, std::vector<DgcGuess>(layout_.segments.size())};
    if (options.momentum_correction) worker.u.emplace(device, context.layout);
    workers_.push_back(std::move(worker));
    packed_.emplace_back(device, dense_bytes);
    packed_pointers_.push_back(packed_.back().f32());
  }
  packed_sum_ = Buffer(device, dense_bytes);
}

StepReport Dgc::step(const StepArgs& args) {
  norms_.gather(args.gradients);
  StepReport done = report();
  done.grad_norm = norms_.root_mean_square();
  done.skipped = !norms_.finite();
  if (done.skipped) return done;

  use_sparsity(args.sparsity);
  for (int local = 0; local < context_.local_workers; ++local) {
    DgcCompressArgs rule;
    rule.g = args.gradients[static_cast<size_t>(local)];
    rule.scale = static_cast<float>(scales_[static_cast<size_t>(local)] = scale_of(local));
    rule.momentum = options_.sgd.momentum;
    rule.nesterov = options_.sgd.nesterov;
    rule.momentum_correction = options_.momentum_correction;
    rule.factor_masking = options_.factor_masking;
    compress(local, rule);
  }

  DgcApplyArgs apply = exchange_messages(args);
  apply.m = momentum_.data();
  apply.momentum = options_.sgd.momentum;
  apply.weight_decay = options_.sgd.weight_decay;
  apply.nesterov = options_.sgd.nesterov;
  apply.momentum_correction = options_.momentum_correction;
  context_.backend.dgc_apply(apply);

  exchange_dense(args, scales_);
  done.sent_bytes = layout_.sent_bytes();
  return done;
}

// Plain SGD on what all workers sent, unless the caller adds momentum.
DgcApplyArgs Dgc::exchange_messages(const StepArgs& args) {
  DgcApplyArgs apply;
  apply.segments = layout_.segments;
  apply.payloads = exchange_.run(args.step);
  apply.values = options_.values;
  apply.sum = sum_.data();
  apply.w = args.weights.data();
  apply.lr = args.lr;
  return apply;
}

// Local clipping: gradient / N is clipped to clip_norm / sqrt(N), by its norm over all parameters (paper, section 3.2).
double Dgc::scale_of(int local) const {
  const double workers = norms_.workers();
  if (!options_.sgd.clip_norm) return 1 / workers;
  return clip_factor(norms_.norm(local) / workers, *options_.sgd.clip_norm / std::sqrt(workers)) / workers;
}

void Dgc::use_sparsity(double sparsity) {
  if (sparsity == sparsity_) return;
  layout_ = make_dgc_layout(context_.layout, sparsity, options_.values);
  sparsity_ = sparsity;
  exchange_.prepare(layout_);
}

void Dgc::compress(int local, const DgcCompressArgs& rule) {
  Worker& worker = workers_[static_cast<size_t>(local)];
  DgcCompressArgs args = rule;
  args.segments = layout_.segments;
  args.guesses = worker.guesses;
  args.u = worker.u ? worker.u->data() : nullptr;
  args.v = worker.v.data();
  args.values = options_.values;
  args.payload = exchange_.payload(local);
  context_.backend.dgc_compress(args);
}

// The tensors that are not compressed take an ordinary momentum step on the ordered sum of the workers' gradients.
void Dgc::exchange_dense(const StepArgs& args, std::span<const double> scales) {
  if (layout_.dense_numel == 0) return;
  for (size_t local = 0; local < packed_.size(); ++local) {
    context_.backend.dgc_pack(
        {layout_.dense, args.gradients[local], packed_[local].f32(), static_cast<float>(scales[local])});
  }
  context_.communicator.all_reduce_ordered(packed_pointers_, packed_sum_.f32(),
                                           static_cast<size_t>(layout_.dense_numel));
  SgdArgs sgd;
  sgd.lr = args.lr;
  sgd.momentum = options_.sgd.momentum;
  sgd.weight_decay = options_.sgd.weight_decay;
  sgd.nesterov = options_.sgd.nesterov;
  for (const DgcRange& range : layout_.dense) {
    sgd.numel = range.numel;
    context_.backend.sgd_step(sgd, {packed_sum_.f32() + range.packed_at, {range.numel}},
                              {momentum_.data() + range.offset, {range.numel}},
                              {args.weights.data() + range.offset, {range.numel}});
  }
}

StepReport Dgc::flush(const StepArgs& args) {
  use_sparsity(0);
  for (int local = 0; local < context_.local_workers; ++local) {
    DgcCompressArgs rule;
    rule.g = sum_.data();  // zero: v goes out as it is and u stays
    rule.momentum_correction = false;
    compress(local, rule);
  }
  context_.backend.dgc_apply(exchange_messages(args));
  StepReport done = report();
  done.sent_bytes = static_cast<int64_t>(layout_.wire.message_bytes());
  return done;
}

StepReport Dgc::report() const {
  StepReport report;
  report.dense_bytes = context_.layout.parameters() * int64_t{sizeof(float)};
  return report;
}

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
