#include "optim/dgc/dgc.h"

#include <cmath>
#include <limits>

#include "optim/dgc/carried.h"
#include "optim/dgc/dense_sum.h"
#include "optim/dgc/exchange.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class Dgc final : public Optimizer, private CarriedStep {
 public:
  Dgc(const OptimizerContext& context, const DgcOptions& options);

  uint64_t prepare(double sparsity) override;
  void begin(const StepArgs&) override;
  void ready(int local_worker, int first_param) override;
  void settle() override;
  bool overlaps() const override { return exchanges_.current().overlaps(); }
  std::optional<ExchangeTime> exchange_time() const override;
  void step(const StepArgs&) override;
  void prepare_flush() override;
  void flush(const StepArgs&) override;
  CarriedStep* carried() override { return carried_ ? this : nullptr; }
  StepBytes bytes() const override;
  std::vector<NamedState> state() const override;

 private:
  struct Worker {
    Arena v;                 // also the rounding errors of small tensors that travel in fp16
    std::optional<Arena> u;  // if keeps_u()
    Buffer guesses;          // one DgcGuess per segment
  };

  size_t message_bytes() const override;
  void send(const StepArgs&, std::span<std::byte> messages) override;
  void receive(const StepArgs&, std::span<const std::byte* const> from) override;

  // Where momentum is 0, u would be the gradient, which enters v without it.
  bool keeps_u() const { return options_.momentum_correction && options_.sgd.momentum != 0; }
  // Momentum runs over the weight decay, and over the sums of what is not corrected or travels dense.
  bool keeps_momentum() const {
    const bool runs_over_sums = !options_.momentum_correction || layout_.dense_numel > 0;
    return options_.sgd.weight_decay != 0 || (options_.sgd.momentum != 0 && runs_over_sums);
  }
  int workers() const { return context_.communicator.size() * context_.local_workers; }
  std::vector<Worker> make_workers() const;
  std::vector<Residuals> residuals();
  void lay_out(DgcLayout layout);
  std::vector<DgcCompressArgs> rules(const StepArgs&);
  DgcCompressArgs rule_for(int local, const StepArgs&) const;
  void find_scales(const StepArgs&);
  void compress(const StepArgs&);
  void add_dense(DgcApplyArgs&, const float* sum) const;
  DgcApplyArgs plain_step(const StepArgs&) const;
  const float* scale(int local) const { return scales_.f32() + local; }

  OptimizerContext context_;
  DgcOptions options_;
  DgcLayout layout_;
  DgcTables tables_;  // the tables of the whole layout
  std::vector<Worker> workers_;
  std::optional<Arena> momentum_;   // if keeps_momentum(); of compressed tensors see DgcStepArgs, of others their own
  Arena sum_;                       // all zero between steps
  std::optional<double> prepared_;  // the sparsity of the layout; none before the first step and after a flush
  uint64_t generation_ = 0;         // counts changes of the layout
  Buffer scales_;                   // a float per local worker
  DenseSum dense_;
  std::optional<Carried> carried_;
  Exchanges exchanges_;  // declared last, so destroyed first: its lane may use the members above
};

Dgc::Dgc(const OptimizerContext& context, const DgcOptions& options)
    : context_(context),
      options_(options),
      layout_(make_dgc_layout(context.layout, options, 0, workers())),
      workers_(make_workers()),
      sum_(context.backend.device(), context.layout, MemoryUse::momentum),
      scales_(context.backend.device(), float_bytes(context.local_workers)),
      dense_(context, layout_.dense_numel, options.small_tensors),
      exchanges_(context, options.bucket_bytes ? residuals() : std::vector<Residuals>()) {
  DGC_CHECK(!options.bucket_bytes || !options.sgd.clip_norm, "the norm over all gradients is known after the last");
  if (keeps_momentum()) momentum_.emplace(context.backend.device(), context.layout, MemoryUse::momentum);
  if (!options.carried) return;
  DGC_CHECK(context.communicator.size() > 1, "a single rank has nobody to carry messages to");
  DGC_CHECK(
      layout_.travel == Travel::sparse && !options.bucket_bytes && options.small_tensors != SmallTensors::dense_fp16,
      "messages that are carried have all that a worker sends");
  carried_.emplace(context, layout_.dense_numel);
}

std::vector<Dgc::Worker> Dgc::make_workers() const {
  const auto& device = context_.backend.device();
  // The layout of a flush may have one segment more, the last one.
  const std::vector<DgcGuess> no_guesses(layout_.segments.size() + 1);
  std::vector<Worker> workers;
  for (int local = 0; local < context_.local_workers; ++local) {
    Worker worker{Arena(device, context_.layout, MemoryUse::residuals), std::nullopt,
                  Buffer(device, no_guesses.size() * sizeof(DgcGuess))};
    device->copy_in(worker.guesses.data(), no_guesses.data(), worker.guesses.bytes());
    if (keeps_u()) worker.u.emplace(device, context_.layout, MemoryUse::residuals);
    workers.push_back(std::move(worker));
  }
  return workers;
}

std::vector<Residuals> Dgc::residuals() {
  std::vector<Residuals> residuals;
  for (Worker& worker : workers_) residuals.push_back({&worker.v, worker.u ? &*worker.u : nullptr});
  return residuals;
}

uint64_t Dgc::prepare(double sparsity) {
  if (prepared_ != sparsity) {
    lay_out(make_dgc_layout(context_.layout, options_, sparsity, workers()));
    prepared_ = sparsity;
  }
  return 2 * generation_ + exchanges_.current().turn();
}

void Dgc::lay_out(DgcLayout layout) {
  layout_ = std::move(layout);
  tables_ = DgcTables(context_.backend.device(), layout_);
  exchanges_.lay_out(layout_);
  ++generation_;
}

void Dgc::begin(const StepArgs& args) {
  exchanges_.current().begin([&] { return rules(args); });
}

void Dgc::ready(int local_worker, int first_param) { exchanges_.current().ready(local_worker, first_param); }

void Dgc::settle() { exchanges_.current().settle(); }

std::optional<ExchangeTime> Dgc::exchange_time() const { return exchanges_.time(); }

void Dgc::step(const StepArgs& args) {
  Exchange& exchange = exchanges_.current();
  compress(args);
  DgcApplyArgs apply = plain_step(args);
  {
    const Range range(context_.backend, "exchange");
    exchange.run(args, apply);
    add_dense(apply, dense_.run());
  }
  const Range range(context_.backend, "apply");
  exchange.apply(apply);
}

// Makes the workers' messages, and packs what travels beside them.
void Dgc::compress(const StepArgs& args) {
  const Range range(context_.backend, "compress");
  exchanges_.current().compress([&] { return rules(args); });
  for (int local = 0; local < context_.local_workers; ++local) {
    const auto i = static_cast<size_t>(local);
    dense_.pack(local, tables_.dense(), {args.gradients[i], scale(local), workers_[i].v.data(), args.record.control()});
  }
}

// What is not compressed takes an ordinary momentum step on the ordered sum of the workers' gradients.
void Dgc::add_dense(DgcApplyArgs& apply, const float* sum) const {
  apply.dense = tables_.dense();
  apply.dense_sum = sum;
  apply.m = momentum_ ? momentum_->data() : nullptr;
  apply.momentum = static_cast<float>(options_.sgd.momentum);
  apply.weight_decay = static_cast<float>(options_.sgd.weight_decay);
  apply.nesterov = options_.sgd.nesterov;
  apply.momentum_correction = options_.momentum_correction || !momentum_;  // without momentum both steps are the same
}

std::vector<DgcCompressArgs> Dgc::rules(const StepArgs& args) {
  find_scales(args);
  std::vector<DgcCompressArgs> rules;
  for (int local = 0; local < context_.local_workers; ++local) rules.push_back(rule_for(local, args));
  return rules;
}

DgcCompressArgs Dgc::rule_for(int local, const StepArgs& args) const {
  const Worker& worker = workers_[static_cast<size_t>(local)];
  DgcCompressArgs rule;
  rule.guesses = static_cast<DgcGuess*>(worker.guesses.data());
  rule.g = args.gradients[static_cast<size_t>(local)];
  rule.u = worker.u ? worker.u->data() : nullptr;
  rule.v = worker.v.data();
  rule.control = args.record.control();
  rule.scale = scale(local);
  rule.momentum = static_cast<float>(options_.sgd.momentum);
  rule.nesterov = options_.sgd.nesterov;
  rule.momentum_correction = keeps_u();
  rule.factor_masking = options_.factor_masking;
  if (options_.masked_momentum == MaskedMomentum::sent) {
    rule.u_share = static_cast<float>(options_.sgd.momentum / (1 - options_.sgd.momentum));
  }
  return rule;
}

// Local clipping: gradient / N is clipped to clip_norm / sqrt(N), by its norm over all parameters (Lin et al. 2018,
// section 3.2).
void Dgc::find_scales(const StepArgs& args) {
  static_assert(sizeof(WorkerShare) % sizeof(double) == 0);
  const auto count = static_cast<double>(workers());
  // With groups the record counts single workers, while a group is one worker here.
  const int64_t members = args.record.local_workers() / context_.local_workers;
  const double infinity = std::numeric_limits<double>::infinity();
  context_.backend.clip_scales({.squares = &args.record.local(0)->square,
                                .stride = members * static_cast<int64_t>(sizeof(WorkerShare) / sizeof(double)),
                                .count = context_.local_workers,
                                .divisor = count,
                                .limit = options_.sgd.clip_norm.value_or(infinity) / std::sqrt(count),
                                .control = args.record.control(),
                                .scales = scales_.f32()});
}

size_t Dgc::message_bytes() const { return layout_.wire.message_bytes() + carried_->dense_bytes(); }

void Dgc::send(const StepArgs& args, std::span<std::byte> messages) {
  compress(args);
  std::byte* to = messages.data();
  for (int local = 0; local < context_.local_workers; ++local, to += message_bytes()) {
    exchanges_.buckets().all().front().copy_out(local, to);
    const size_t dense = carried_->dense_bytes();
    if (dense > 0) context_.backend.device()->copy_out(to + layout_.wire.message_bytes(), dense_.packed(local), dense);
  }
}

void Dgc::receive(const StepArgs& args, std::span<const std::byte* const> from) {
  DgcApplyArgs apply = plain_step(args);
  Bucket& bucket = exchanges_.buckets().all().front();
  add_dense(apply, carried_->place(bucket, from, sum_.data(), args.record.control()));
  const Range range(context_.backend, "apply");
  exchanges_.current().apply(apply);
}

// The arguments of a step of plain SGD on what all workers sent, to which add_dense() adds momentum.
DgcApplyArgs Dgc::plain_step(const StepArgs& args) const {
  DgcApplyArgs apply;
  apply.table = tables_.table();
  apply.control = args.record.control();
  apply.workers = workers();
  apply.sum = sum_.data();
  apply.w = args.weights.data();
  return apply;
}

void Dgc::prepare_flush() {
  lay_out(make_flush_layout(context_.layout, options_));
  prepared_.reset();
}

void Dgc::flush(const StepArgs& args) {
  prepare_flush();
  Exchange& exchange = exchanges_.current();
  exchange.compress([&] {
    std::vector<DgcCompressArgs> rules;
    for (const Worker& worker : workers_) {
      DgcCompressArgs rule;
      rule.guesses = static_cast<DgcGuess*>(worker.guesses.data());
      rule.g = sum_.data();  // zero, so v is sent as it is and u stays
      rule.v = worker.v.data();
      rule.control = args.record.control();
      rule.momentum_correction = false;
      rules.push_back(rule);
    }
    return rules;
  });
  DgcApplyArgs apply = plain_step(args);
  exchange.run(args, apply);
  exchange.apply(apply);
}

StepBytes Dgc::bytes() const {
  return {exchanges_.current().sent_bytes() + layout_.dense_bytes,
          context_.layout.parameters() * int64_t{sizeof(float)}, layout_.travel};
}

std::vector<NamedState> Dgc::state() const {
  std::vector<NamedState> all;
  if (momentum_) all.push_back({"momentum", -1, &*momentum_});
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
