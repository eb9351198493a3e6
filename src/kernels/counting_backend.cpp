#include "kernels/counting_backend.h"

#include <utility>

namespace dgc {
namespace {

// A view that is not there moves nothing.
int64_t moved(ConstView view) { return view ? static_cast<int64_t>(view.bytes()) : 0; }

template <typename... Views>
int64_t moved(ConstView first, const Views&... more) {
  return moved(first) + moved(more...);
}

constexpr int64_t kFloat = 4;

// What moves for weights of that type: cuDNN reads or writes each once. On its way to cuDNN, a weight is read in fp32
// and written; on its way back, a gradient is read, and added to one in fp32.
int64_t used_bytes(const FilterArgs& filter, DType type) {
  return filter.numel() * static_cast<int64_t>(dtype_size(type));
}
int64_t load_bytes(const FilterArgs& filter, DType type) { return filter.numel() * kFloat + used_bytes(filter, type); }
int64_t add_bytes(const FilterArgs& filter, DType type) {
  return used_bytes(filter, type) + 2 * filter.numel() * kFloat;
}

// A step of SGD reads g, and reads and writes w and, where there is momentum, m.
int64_t sgd_bytes(int64_t numel, const float* m) { return (m == nullptr ? 3 : 5) * numel * kFloat; }

double multiply_adds(const Conv2dArgs& a) {
  const int64_t inputs_of_group = a.in_c / a.groups;  // whole: in_c is a multiple of groups
  return 2.0 * static_cast<double>(a.batch * a.out_h() * a.out_w() * a.out_c) *
         static_cast<double>(a.kernel_h * a.kernel_w * inputs_of_group);
}

double multiply_adds(const LinearArgs& a) {
  return 2.0 * static_cast<double>(a.batch * a.in) * static_cast<double>(a.out);
}

double multiply_adds(const RnnArgs& a) {
  return 2.0 * static_cast<double>(a.steps * a.batch) * static_cast<double>(a.gates() * (a.in + a.hidden));
}

bool is_of_halves(ConstView x) { return dtype_size(x.dtype) == 2; }

int64_t moved(const RnnWeights& w) { return moved(w.w_ih, w.w_hh, w.b_ih, w.b_hh); }

// Bytes of one message in canonical form.
int64_t canonical_bytes(const WireHeader& header) {
  return static_cast<int64_t>(kWireHeaderBytes + header.payload_bytes);
}
int64_t sent_entries(const WireHeader& header) { return static_cast<int64_t>(header.entries); }

// What an access to a single number moves: a sector of the memory.
constexpr int64_t kSector = 32;

// Its tasks are done at once, and counted with the owner's work.
class CountingLane final : public Lane {
 public:
  CountingLane(CountingBackend& owner, int number) : owner_(owner), number_(number) {}
  Backend& backend() const override { return owner_; }
  void post(std::function<void()> task) override { owner_.in_lane(number_, task); }
  void drain() override {}

 private:
  CountingBackend& owner_;
  int number_;
};

}  // namespace

CountingBackend::CountingBackend(std::unique_ptr<Backend> of, std::shared_ptr<CountingDevice> device)
    : of_(std::move(of)), device_(std::move(device)) {}

std::vector<OpCost> CountingBackend::take_calls() { return std::exchange(calls_, {}); }

std::unique_ptr<Lane> CountingBackend::make_lane() { return std::make_unique<CountingLane>(*this, 0); }

std::vector<std::unique_ptr<Lane>> CountingBackend::make_lanes(int count) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 1; i <= count; ++i) lanes.push_back(std::make_unique<CountingLane>(*this, i));
  return lanes;
}

void CountingBackend::begin_range(const char* name) {
  if (depth_++ == 0) phase_ = name;
}

void CountingBackend::in_lane(int lane, const std::function<void()>& body) {
  const int depth = std::exchange(depth_, 0), before = std::exchange(lane_, lane);
  const std::string phase = phase_;
  body();
  depth_ = depth;
  lane_ = before;
  phase_ = phase;
}

void CountingBackend::count(OpCost cost) {
  if (depth_ > 0) cost.phase = phase_;
  cost.lane = lane_;
  calls_.push_back(std::move(cost));
}

void CountingBackend::count(const char* op, int64_t bytes, int64_t launches) {
  count({.op = op, .bytes = bytes, .launches = launches});
}

// All filters of a pass, or of several passes, change their order and type in one launch on the way to cuDNN, and the
// gradients of a pass in one on the way back; outside of a pass each has a launch of its own.
void CountingBackend::with_filters(std::span<const FilterUse> uses, DType activations,
                                   const std::function<void()>& body) {
  std::vector<FilterUse> loaded, added;
  for (const FilterUse& use : uses) {
    if (passes_ == 0 && !use.filter.stays_as_it_is(activations)) loaded.push_back(use);
    if (use.dw) added.push_back(use);
  }
  count_filters("load_filters", loaded, activations, load_bytes);
  ++passes_;
  adds_gradients_ = !added.empty();
  body();
  adds_gradients_ = false;
  --passes_;
  count_filters("add_filters", added, activations, add_bytes);
}

void CountingBackend::count_filters(const char* op, std::span<const FilterUse> uses, DType activations,
                                    int64_t (*bytes_of)(const FilterArgs&, DType)) {
  if (uses.empty()) return;
  int64_t bytes = 0;
  for (const FilterUse& use : uses) bytes += bytes_of(use.filter, activations);
  count(op, bytes, static_cast<int64_t>((uses.size() + kMostFilters - 1) / kMostFilters));
}

void CountingBackend::conv2d_forward(const Conv2dArgs& a, ConstView x, ConstView, ConstView b, View y) {
  convolutions_.insert({ConvPass::forward, a, x.dtype, static_cast<bool>(b)});
  count(
      {.op = "conv2d_forward",
       .bytes = moved(x, b, y) + used_bytes(a.filter(), x.dtype) + (passes_ > 0 ? 0 : load_bytes(a.filter(), x.dtype)),
       .flops = multiply_adds(a),
       .half = is_of_halves(x),
       .launches = 1 + (b && is_of_halves(x) ? 1 : 0) + (passes_ > 0 ? 0 : 1)});
}

void CountingBackend::count_backward_data(const PlannedConv& key, ConstView dy, View dx) {
  const FilterArgs filter = key.args.filter();
  convolutions_.insert(key);
  count({.op = "conv2d_backward_data",
         .bytes = moved(dy, dx) + used_bytes(filter, key.type) + (passes_ > 0 ? 0 : load_bytes(filter, key.type)) +
                  (key.adds ? moved(dx) : 0),
         .flops = multiply_adds(key.args),
         .half = is_of_halves(dy),
         .launches = passes_ > 0 ? 1 : 2});
}

void CountingBackend::conv2d_backward_data(const Conv2dArgs& a, ConstView dy, ConstView, View dx) {
  count_backward_data({ConvPass::backward_data, a, dy.dtype}, dy, dx);
}

void CountingBackend::conv2d_add_backward_data(const Conv2dArgs& a, ConstView dy, ConstView, View, View dx) {
  count_backward_data({ConvPass::backward_data, a, dy.dtype, true}, dy, dx);
}

void CountingBackend::conv2d_backward_weights(const Conv2dArgs& a, ConstView x, ConstView dy, View, View db) {
  if (db) count("conv2d_backward_weights", moved(dy) + 2 * moved(db));
  convolutions_.insert({ConvPass::backward_weights, a, dy.dtype});
  count(
      {.op = "conv2d_backward_weights",
       .bytes = moved(x, dy) + used_bytes(a.filter(), x.dtype) + (adds_gradients_ ? 0 : add_bytes(a.filter(), x.dtype)),
       .flops = multiply_adds(a),
       .half = is_of_halves(x),
       .launches = adds_gradients_ ? 1 : 2});
}

void CountingBackend::linear_forward(const LinearArgs& a, ConstView x, ConstView w, ConstView b, View y) {
  count({.op = "linear_forward",
         .bytes = moved(x, w, b, y),
         .flops = multiply_adds(a),
         .half = is_of_halves(x),
         .launches = b ? 2 : 1});
}

void CountingBackend::linear_backward(const LinearArgs& a, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                                      View db) {
  const bool half = is_of_halves(dy);
  if (dx) count({.op = "linear_backward", .bytes = moved(dy, w, dx), .flops = multiply_adds(a), .half = half});
  count({.op = "linear_backward", .bytes = moved(x, dy) + 2 * moved(dw), .flops = multiply_adds(a), .half = half});
  if (db) count("linear_backward", moved(dy) + 2 * moved(db));
}

size_t CountingBackend::rnn_saved_bytes(const RnnArgs& a, DType activations) {
  if (of_->supports(activations)) return of_->rnn_saved_bytes(a, activations);
  return of_->rnn_saved_bytes(a, DType::f32) * dtype_size(activations) / dtype_size(DType::f32);
}

void CountingBackend::rnn_forward(const RnnArgs& a, ConstView x, const RnnWeights& w, const RnnState& state, View y,
                                  View saved) {
  count({.op = "rnn_forward",
         .bytes = moved(x, y, saved) + moved(w) + 2 * moved(state.h, state.c),
         .flops = multiply_adds(a),
         .half = is_of_halves(x),
         .serial_steps = a.steps});
}

// The gradients of the weights are products of whole matrices, with no step waiting for another. cuDNN adds them to
// ours in place, but where there are biases (rnn_cache.h): there one more launch adds them.
void CountingBackend::rnn_backward(const RnnArgs& a, ConstView x, const RnnWeights& w, ConstView y, View saved,
                                   ConstView dy, View dx, const RnnGradients& d) {
  const bool half = is_of_halves(x);
  count({.op = "rnn_backward",
         .bytes = moved(y, saved, dy, dx) + moved(w),
         .flops = multiply_adds(a),
         .half = half,
         .serial_steps = a.steps});
  count({.op = "rnn_backward",
         .bytes = moved(x, y, saved) + (a.biases ? 4 : 2) * moved(d.w_ih, d.w_hh, d.b_ih, d.b_hh),
         .flops = multiply_adds(a),
         .half = half,
         .launches = a.biases ? 2 : 1});
}

void CountingBackend::batch_norm_forward(const BatchNormArgs&, ConstView x, ConstView residual, ConstView, ConstView,
                                         View, View, View y, View) {
  count("batch_norm_forward", 2 * moved(x) + moved(residual, y), 2);  // x is read for its statistics first
}

void CountingBackend::batch_norm_inference(const BatchNormArgs&, ConstView x, ConstView residual, ConstView, ConstView,
                                           ConstView, ConstView, View y) {
  count("batch_norm_inference", moved(x, residual, y));
}

// As batch_norm_backward.cu says: 7 tensors' traffic where dy is masked in place, else 5.
void CountingBackend::batch_norm_backward(const BatchNormArgs& a, ConstView x, ConstView, ConstView, ConstView, View,
                                          View, View, View) {
  count("batch_norm_backward", (a.relu && a.residual ? 7 : 5) * moved(x), 2);
}

void CountingBackend::pool_forward(const PoolArgs&, ConstView x, View y, View saved) {
  count("pool_forward", moved(x, y, saved));
}
void CountingBackend::pool_backward(const PoolArgs&, ConstView dy, ConstView saved, View dx) {
  count("pool_backward", moved(dy, saved, dx));
}
void CountingBackend::global_pool_forward(const GlobalPoolArgs&, ConstView x, View y) {
  count("global_pool_forward", moved(x, y));
}
void CountingBackend::global_pool_backward(const GlobalPoolArgs&, ConstView dy, View dx) {
  count("global_pool_backward", moved(dy, dx));
}
void CountingBackend::activation_forward(Activation, ConstView x, View y) { count("activation_forward", moved(x, y)); }
void CountingBackend::activation_backward(Activation, ConstView y, ConstView dy, View dx) {
  count("activation_backward", moved(y, dy, dx));
}
void CountingBackend::dropout_forward(const DropoutArgs&, ConstView x, View y) {
  count("dropout_forward", moved(x, y));
}
void CountingBackend::lrn_forward(const LrnArgs&, ConstView x, View y) { count("lrn_forward", moved(x, y)); }
void CountingBackend::lrn_backward(const LrnArgs&, ConstView x, ConstView dy, View dx) {
  count("lrn_backward", moved(x, dy, dx));
}
void CountingBackend::shortcut_forward(const ShortcutArgs&, ConstView x, View y) {
  count("shortcut_forward", moved(x, y));
}
void CountingBackend::shortcut_backward(const ShortcutArgs&, ConstView dy, View dx) {
  count("shortcut_backward", moved(dy, dx));
}
void CountingBackend::add(ConstView x, View y) { count("add", moved(x) + 2 * moved(y)); }
void CountingBackend::subtract(ConstView a, ConstView b, View y) { count("subtract", moved(a, b, y)); }
void CountingBackend::convert(ConstView x, View y) { count("convert", moved(x, y), x.dtype == y.dtype ? 0 : 1); }

void CountingBackend::embedding_forward(const EmbeddingArgs&, ConstView tokens, ConstView, View y) {
  count("embedding_forward", moved(tokens) + 2 * moved(y));  // as many rows of the table as of y
}
void CountingBackend::embedding_backward(const EmbeddingArgs&, ConstView tokens, ConstView dy, View) {
  count("embedding_backward", moved(tokens) + 3 * moved(dy));
}

void CountingBackend::sequence_mask(const SequenceArgs&, ConstView, ConstView x, View y) {
  count("sequence_mask", moved(x, y));
}
void CountingBackend::sequence_reverse(const SequenceArgs&, ConstView, ConstView x, View y) {
  count("sequence_reverse", moved(x, y));
}
void CountingBackend::sequence_norm_forward(const SequenceNormArgs&, ConstView, ConstView x, ConstView, ConstView, View,
                                            View, View y, View) {
  count("sequence_norm_forward", 3 * moved(x) + moved(y), 3);  // mean, variance, then y
}
void CountingBackend::sequence_norm_backward(const SequenceNormArgs&, ConstView, ConstView x, ConstView, ConstView,
                                             ConstView dy, View dx, View, View) {
  count("sequence_norm_backward", 2 * moved(x, dy) + moved(dx), 2);
}
void CountingBackend::lookahead_forward(const LookaheadArgs&, ConstView x, ConstView w, View y) {
  count("lookahead_forward", moved(x, w, y));
}
void CountingBackend::lookahead_backward(const LookaheadArgs&, ConstView x, ConstView w, ConstView dy, View dx,
                                         View dw) {
  count("lookahead_backward", moved(x, dy, dx) + moved(dy, w) + 2 * moved(dw), 2);
}
void CountingBackend::transpose(const TransposeArgs&, ConstView x, View y) { count("transpose", moved(x, y)); }

void CountingBackend::ctc_loss(const CtcArgs& a, ConstView logits, ConstView, ConstView labels, View dlogits, double*) {
  count({.op = "ctc_loss",
         .bytes = 2 * moved(logits) + moved(labels, dlogits),
         .launches = dlogits ? 4 : 3,
         .serial_steps = a.steps});
}
void CountingBackend::softmax_cross_entropy(const CrossEntropyArgs&, ConstView logits, ConstView labels, View dlogits,
                                            double*) {
  count("softmax_cross_entropy", moved(logits, labels, dlogits));
}

// The ops of the step as a whole read and write a few numbers.
void CountingBackend::begin_step(const StepInput&, StepControl*, std::span<WorkerShare>) { count("begin_step", 0); }
void CountingBackend::judge_step(std::span<const WorkerShare>, StepControl*) { count("judge_step", 0); }
void CountingBackend::clip_scales(const ClipArgs&) { count("clip_scales", 0); }
void CountingBackend::copy_unless_skipped(const StepControl*, ConstView from, View to) {
  if (to) count("copy_unless_skipped", moved(from, to));
}
void CountingBackend::copy_if_skipped(const StepControl*, ConstView, View to) {
  if (to) count("copy_if_skipped", 0);  // steps are hardly ever skipped
}
void CountingBackend::add_loss(const LossStats*, LossStats*) { count("add_loss", 0); }
void CountingBackend::read_clock(uint64_t*) { count("read_clock", 0); }
void CountingBackend::add_overlap_time(const OverlapTimeArgs&) { count("add_overlap_time", 0); }

void CountingBackend::sum_squares(ConstView x, double*) { count("sum_squares", moved(x)); }
void CountingBackend::ordered_sum(std::span<const float* const> x, float*, int64_t n) {
  count("ordered_sum", static_cast<int64_t>(x.size() + 1) * n * kFloat);
}
void CountingBackend::sgd_step(const SgdArgs& a, ConstView, View m, View) {
  count("sgd_step", sgd_bytes(a.numel, m.f32()));
}

// g, u and v are read, u and v written, and the message is written, read to be hashed, and taken from u and v. Where
// more than a 16th of a tensor is sent, next_threshold() makes no guess, and the radix selection reads v 5 times. Only
// the sums over all tensors are known here, whose k may have been rounded up by half an entry each.
void CountingBackend::dgc_compress(const DgcCompressArgs& a) {
  const bool guesses = 16 * sent_entries(a.header) <= a.table.numel + int64_t{8} * a.table.count;
  const int64_t arenas = (a.momentum_correction ? 5 : 3) + (guesses ? 0 : 5);
  count("dgc_compress",
        arenas * a.table.numel * kFloat + 2 * canonical_bytes(a.header) + 4 * kSector * sent_entries(a.header));
}
void CountingBackend::dgc_encode(const DgcEncodeArgs& a) {
  count("dgc_encode", 3 * canonical_bytes(a.header) + static_cast<int64_t>(a.codes.payload_bytes) +
                          2 * kSector * sent_entries(a.header));
}
void CountingBackend::dgc_decode(const DgcDecodeArgs& a) {
  count("dgc_decode", a.workers * static_cast<int64_t>(a.codes.payload_bytes + a.payload_bytes));
}
// Messages are read twice, to be checked and to be added, in shared memory. With weight decay, or without momentum
// correction, all weights and their momentum move, and else only what was sent.
void CountingBackend::dgc_apply(const DgcApplyArgs& a) {
  const int64_t sent = a.workers * sent_entries(a.header);
  const int64_t weights =
      a.weight_decay != 0 || !a.momentum_correction ? 4 * a.table.numel * kFloat : 2 * kSector * sent;
  count("dgc_apply", int64_t{2} * a.workers * canonical_bytes(a.header) + weights + sgd_bytes(a.dense.numel, a.m));
}
void CountingBackend::dgc_scatter(const DgcScatterArgs& a) { count("dgc_scatter", a.table.numel * kFloat); }
void CountingBackend::dgc_step(const DgcStepArgs& a) {
  // This is the most: where the sum is zero, hardly anything but the sum is read, and the sum is not cleared.
  const int64_t arrays = a.momentum_correction && a.weight_decay == 0 ? 4 : 6;
  count("dgc_step", arrays * a.table.numel * kFloat + sgd_bytes(a.dense.numel, a.m));
}
void CountingBackend::dgc_pack(const DgcPackArgs& a) { count("dgc_pack", 2 * a.dense.numel * kFloat); }
void CountingBackend::dgc_pack_half(const DgcPackHalfArgs& a) {
  count("dgc_pack_half", 3 * a.dense.numel * kFloat + a.dense.numel * 2);
}
void CountingBackend::dgc_sum_half(const DgcSumHalfArgs& a) {
  count("dgc_sum_half", a.numel * (int64_t{2} * a.workers + kFloat));
}
// The whole message is read for each owner. It has half as many entries as the rows have room for, of 6 bytes each.
void CountingBackend::dgc_deal(const DgcDealArgs& a) {
  const int64_t entries = int64_t{a.deal.owners} * a.deal.room / 2;
  count("dgc_deal", a.deal.owners * (entries * 6 + a.table.blocks * kFloat + a.deal.row() * kFloat));
}
void CountingBackend::dgc_sum_dealt(const DgcSumDealtArgs& a) {
  count("dgc_sum_dealt", a.workers * a.deal.row() * kFloat + a.deal.shard() * kFloat);
}
void CountingBackend::dgc_undeal(const DgcUndealArgs& a) {
  count("dgc_undeal",
        int64_t{2} * a.workers * canonical_bytes(a.header) + kSector * a.workers * sent_entries(a.header));
}
void CountingBackend::dgc_settle(const DgcSettleArgs& a) {
  const int64_t words = a.deal.owners * a.deal.row();
  count("dgc_settle", words * (kFloat + 2 * kSector / 2));
}

}  // namespace dgc
