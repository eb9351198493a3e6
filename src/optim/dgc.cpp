#include <cmath>
#include <limits>

#include "optim/dgc_dense.h"
#include "optim/dgc_overlap.h"
#include "optim/optimizer.h"
#include "optim/ordered_reduce.h"
#include "optim/split_reduce.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class Dgc final : public Optimizer {
 public:
  Dgc(const OptimizerContext& context, const DgcOptions& options);

  uint64_t prepare(double sparsity) override;
  void begin(const StepArgs&) override;
  void ready(int local_worker, int first_param) override;
  void settle() override;
  std::optional<ExchangeTime> exchange_time() const override;
  void step(const StepArgs&) override;
  void flush(const StepArgs&) override;
  StepBytes bytes() const override;
  std::vector<NamedState> state() const override;

 private:
  struct Worker {
    Arena v;                 // also what rounding took from small tensors that travel in fp16
    std::optional<Arena> u;  // only with momentum correction
    Buffer guesses;          // one DgcGuess per segment
  };

  int workers() const { return context_.communicator.size() * context_.local_workers; }
  DgcLayoutOptions layout_options(double sparsity) const {
    return {sparsity,           options_.wire, options_.small_tensors, options_.small_sparsity,
            options_.transport, workers(),     options_.algorithm};
  }
  void lay_out(const DgcLayoutOptions&, DgcOverlap* overlap);
  void compress_all(const StepArgs&);
  DgcCompressArgs rule_for(int local, const StepArgs&) const;
  DgcApplyArgs plain_step(const StepArgs&) const;
  void exchange_sums(const StepArgs&, DgcApplyArgs&);
  void exchange_split(DgcApplyArgs&);
  void exchange_dense(DgcApplyArgs&);
  void find_scales(const StepArgs&);
  const float* scale(int local) const { return scales_.f32() + local; }

  OptimizerContext context_;
  DgcOptions options_;
  DgcBuckets buckets_;
  std::vector<Worker> workers_;
  Arena momentum_;                  // weight decay's where tensors are compressed, the ordinary one elsewhere
  Arena sum_;                       // all zero between steps
  std::optional<double> prepared_;  // the sparsity of the layout; none before the first step and after a flush
  uint64_t generation_ = 0;         // counts changes of the layout
  DgcLayout layout_;
  DgcTables tables_;  // of the layout as a whole
  Buffer scales_;     // a float per local worker
  // Of what is compressed, while it travels dense.
  std::optional<OrderedReduce> masked_;
  std::vector<const float*> masked_gradients_;
  std::optional<SplitReduce> split_;  // of what is compressed, where shards are added up by their owners
  DgcDenseSum dense_;
  // What is done beside the backward pass, and whether it is in this layout. Last: it may be at work with the others.
  bool overlaps_ = false;
  std::optional<DgcOverlap> overlap_;
};

Dgc::Dgc(const OptimizerContext& context, const DgcOptions& options)
    : context_(context),
      options_(options),
      buckets_(context),
      momentum_(context.backend.device(), context.layout),
      sum_(context.backend.device(), context.layout),
      layout_(make_dgc_layout(context.layout, layout_options(0))),
      scales_(context.backend.device(), static_cast<size_t>(context.local_workers) * sizeof(float)),
      dense_(context, layout_.dense_numel, options.small_tensors == SmallTensors::dense_fp16) {
  const auto& device = context.backend.device();
  // A flush may have a segment more, the last one.
  const std::vector<DgcGuess> no_guesses(layout_.segments.size() + 1);
  for (int local = 0; local < context.local_workers; ++local) {
    Worker worker{Arena(device, context.layout), std::nullopt, Buffer(device, no_guesses.size() * sizeof(DgcGuess))};
    device->copy_in(worker.guesses.data(), no_guesses.data(), worker.guesses.bytes());
    if (options.momentum_correction) worker.u.emplace(device, context.layout);
    workers_.push_back(std::move(worker));
  }
  if (options.bucket_bytes) {
    DGC_CHECK(!options.sgd.clip_norm, "the norm over all gradients is known after the last of them");
    std::vector<DgcOverlap::Held> held;
    for (Worker& worker : workers_) held.push_back({&worker.v, worker.u ? &*worker.u : nullptr});
    overlap_.emplace(context, std::move(held));
  }
}

uint64_t Dgc::prepare(double sparsity) {
  if (prepared_ != sparsity) {
    lay_out(layout_options(sparsity), overlap_ ? &*overlap_ : nullptr);
    prepared_ = sparsity;
  }
  if (overlaps_) overlap_->turn();
  return 2 * generation_ + (overlap_ ? overlap_->side() : 0);
}

// overlap: what exchanges messages, where there are any, or null.
void Dgc::lay_out(const DgcLayoutOptions& options, DgcOverlap* overlap) {
  layout_ = make_dgc_layout(context_.layout, options);
  tables_ = DgcTables(context_.backend.device(), layout_);
  if (layout_.transport == Transport::sparse) masked_.reset();
  if (layout_.split) {
    split_.emplace(context_, layout_);
  } else {
    split_.reset();
  }
  overlaps_ = overlap != nullptr && layout_.transport == Transport::sparse && !split_;
  if (overlaps_) {
    overlap->lay_out(buckets_, cut_into_buckets(context_.layout, layout_, *options_.bucket_bytes));
  } else {
    buckets_.prepare({{layout_, 0}}, context_.backend);
  }
  if (layout_.transport == Transport::dense && !masked_) {
    masked_.emplace(context_.backend, context_.communicator, context_.local_workers, layout_.compressed_extent());
  }
  ++generation_;
}

void Dgc::begin(const StepArgs& args) {
  if (!overlaps_) return;
  find_scales(args);
  std::vector<DgcCompressArgs> rules;
  for (int local = 0; local < context_.local_workers; ++local) rules.push_back(rule_for(local, args));
  overlap_->begin(std::move(rules));
}

void Dgc::ready(int local_worker, int first_param) {
  if (overlaps_) overlap_->ready(local_worker, first_param);
}

void Dgc::settle() {
  if (!overlaps_) return;
  const Range range(context_.backend, "exchange");
  overlap_->settle();
}

std::optional<ExchangeTime> Dgc::exchange_time() const {
  return overlap_ ? std::optional(overlap_->time()) : std::nullopt;
}

void Dgc::step(const StepArgs& args) {
  compress_all(args);
  DgcApplyArgs apply = plain_step(args);
  {
    const Range range(context_.backend, "exchange");
    if (masked_) {
      exchange_sums(args, apply);
    } else if (split_) {
      exchange_split(apply);
    } else if (!overlaps_) {
      buckets_.exchange(apply.control);
    }
    if (overlaps_) overlap_->begin_rest();
    exchange_dense(apply);
    if (overlaps_) overlap_->end_rest();
  }
  const Range range(context_.backend, "apply");
  masked_ || split_ ? context_.backend.dgc_step(apply) : buckets_.apply(context_.backend, apply);
  if (split_) context_.backend.device()->zero(sum_.data(), sum_.bytes());
}

// What is not compressed takes an ordinary momentum step on the ordered sum of the workers' gradients.
void Dgc::exchange_dense(DgcApplyArgs& apply) {
  apply.dense = tables_.dense();
  apply.dense_sum = dense_.run();
  apply.m = momentum_.data();
  apply.momentum = options_.sgd.momentum;
  apply.weight_decay = options_.sgd.weight_decay;
  apply.nesterov = options_.sgd.nesterov;
  apply.momentum_correction = options_.momentum_correction;
}

void Dgc::compress_all(const StepArgs& args) {
  const Range range(context_.backend, "compress");
  if (!overlaps_) find_scales(args);
  for (int local = 0; local < context_.local_workers; ++local) {
    if (overlaps_) {
      overlap_->take_back_if_skipped(local, args.record.control(), layout_.compressed_extent());
    } else {
      buckets_.compress(local, rule_for(local, args));
    }
    dense_.pack(local, tables_.dense(),
                {args.gradients[static_cast<size_t>(local)], scale(local),
                 workers_[static_cast<size_t>(local)].v.data(), args.record.control()});
  }
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
  rule.momentum = options_.sgd.momentum;
  rule.nesterov = options_.sgd.nesterov;
  rule.momentum_correction = options_.momentum_correction;
  rule.factor_masking = options_.factor_masking && !split_;  // a split masks what it has sent in the end
  return rule;
}

// Local clipping: gradient / N is clipped to clip_norm / sqrt(N), by its norm over all parameters (paper, section 3.2).
void Dgc::find_scales(const StepArgs& args) {
  static_assert(sizeof(WorkerShare) % sizeof(double) == 0);
  const auto count = static_cast<double>(workers());
  // The record may count more workers than this: groups of them, which are one worker here.
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

// Plain SGD on what all workers sent, unless exchange_dense adds momentum.
DgcApplyArgs Dgc::plain_step(const StepArgs& args) const {
  DgcApplyArgs apply;
  apply.table = tables_.table();
  apply.control = args.record.control();
  apply.workers = workers();
  apply.sum = sum_.data();
  apply.w = args.weights.data();
  return apply;
}

void Dgc::exchange_split(DgcApplyArgs& apply) {
  const bool masks = options_.momentum_correction && options_.factor_masking;
  std::vector<SplitReduce::Worker> workers;
  for (int local = 0; local < context_.local_workers; ++local) {
    const Worker& worker = workers_[static_cast<size_t>(local)];
    workers.push_back({buckets_.all().front().message(local), masks ? worker.u->data() : nullptr, worker.v.data()});
  }
  split_->run({apply.table, apply.control, workers, apply.sum});
}

// Each worker's message takes the place of its gradient, which has had its use.
void Dgc::exchange_sums(const StepArgs& args, DgcApplyArgs& apply) {
  for (int local = 0; local < context_.local_workers; ++local) {
    DgcScatterArgs scatter;
    scatter.table = apply.table;
    scatter.control = apply.control;
    scatter.message = buckets_.all().front().message(local);
    scatter.dense = args.gradients[static_cast<size_t>(local)];
    context_.backend.dgc_scatter(scatter);
  }
  masked_gradients_.assign(args.gradients.begin(), args.gradients.end());
  apply.sum = masked_->run(masked_gradients_);
}

void Dgc::flush(const StepArgs& args) {
  lay_out(flush_options(layout_options(0)), nullptr);
  prepared_.reset();
  for (int local = 0; local < context_.local_workers; ++local) {
    const Worker& worker = workers_[static_cast<size_t>(local)];
    DgcCompressArgs rule;
    rule.guesses = static_cast<DgcGuess*>(worker.guesses.data());
    rule.g = sum_.data();  // zero: v goes out as it is and u stays
    rule.v = worker.v.data();
    rule.control = args.record.control();
    rule.momentum_correction = false;
    buckets_.compress(local, rule);
  }
  buckets_.exchange(args.record.control());
  buckets_.apply(context_.backend, plain_step(args));
}

StepBytes Dgc::bytes() const {
  const bool in_buckets = layout_.transport == Transport::sparse && !layout_.split;
  const int64_t sent = in_buckets ? buckets_.sent_bytes() + layout_.dense_bytes : layout_.sent_bytes();
  return {sent, context_.layout.parameters() * int64_t{sizeof(float)}, layout_.transport, layout_.split.has_value()};
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
