#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/dgc_args.h"
#include "kernels/dgc_deal.h"
#include "kernels/op_args.h"
#include "kernels/step_control.h"
#include "tensor/device.h"
#include "tensor/view.h"

namespace dgc {

// Every op once. An op takes one struct of named sizes and options (also the key under which a backend caches what it
// prepared) and views of the data. Shapes are checked by the layer that calls; a backend trusts them.
//
// Conventions, on every backend:
//   - Images are NHWC, weights lie in PyTorch's layout (tensor/shape.h).
//   - Parameters, statistics and their gradients are fp32. Activations and their gradients (x, y, residual, dx, dy,
//     logits) are all of one type, which a backend may offer in 16 bits (supports()); sums are fp32 or better.
//   - Outputs are overwritten. Gradients of PARAMETERS (dw, db, dscale, dshift) are ADDED to, so micro-batches
//   accumulate.
//   - A null dx, dw or db view means that gradient is not wanted.
//   - Deterministic: the same inputs and number of threads give the same bits.
//   - In a steady step (same args as before) nothing allocates and nothing waits for the device.

// Sees the ranges of a step that is not recorded.
class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  virtual void begin(const char* name) = 0;
  virtual void end() = 0;
};

class Lane;

class Backend {
 public:
  virtual ~Backend() = default;
  RangeObserver* observer = nullptr;  // may be set between steps; nothing is recorded or replayed meanwhile
  virtual std::string name() const = 0;
  virtual const std::shared_ptr<Device>& device() const = 0;
  virtual bool supports(DType activations) const = 0;
  // This backend is the lane's owner, which must outlive it.
  virtual std::unique_ptr<Lane> make_lane() = 0;

  // Names what is queued between the two, for profilers (Range). `name` must outlive the call only.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;

  // Runs body, whose ops are the same in every call with this key. A backend may record what body queues and replay
  // that instead of calling it: body must not look at results nor do anything on the host that each step needs.
  virtual void run_recorded(uint64_t key, const std::function<void()>& body) = 0;

  virtual void conv2d_forward(const Conv2dArgs&, ConstView x, ConstView w, ConstView b, View y) = 0;  // b may be null
  virtual void conv2d_backward_data(const Conv2dArgs&, ConstView dy, ConstView w, View dx) = 0;
  virtual void conv2d_backward_weights(const Conv2dArgs&, ConstView x, ConstView dy, View dw, View db) = 0;

  virtual void linear_forward(const LinearArgs&, ConstView x, ConstView w, ConstView b, View y) = 0;  // b may be null
  virtual void linear_backward(const LinearArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                               View db) = 0;

  // Training: statistics of this batch, running statistics updated (variance unbiased, as PyTorch's). saved is memory
  // of batch_norm_saved_bytes() that must reach backward untouched.
  virtual size_t batch_norm_saved_bytes(const BatchNormArgs&) = 0;
  virtual void batch_norm_forward(const BatchNormArgs&, ConstView x, ConstView residual, ConstView scale,
                                  ConstView shift, View running_mean, View running_var, View y, View saved) = 0;
  virtual void batch_norm_inference(const BatchNormArgs&, ConstView x, ConstView residual, ConstView scale,
                                    ConstView shift, ConstView mean, ConstView var, View y) = 0;
  // With relu and residual, dy is masked IN PLACE first: it then is the gradient of the residual too. With relu alone
  // it may be.
  virtual void batch_norm_backward(const BatchNormArgs&, ConstView x, ConstView y, ConstView scale, ConstView saved,
                                   View dy, View dx, View dscale, View dshift) = 0;

  virtual size_t pool_saved_bytes(const PoolArgs&) = 0;  // 0: nothing to keep. saved may be null in evaluation
  virtual void pool_forward(const PoolArgs&, ConstView x, View y, View saved) = 0;
  virtual void pool_backward(const PoolArgs&, ConstView dy, ConstView saved, View dx) = 0;
  virtual void global_pool_forward(const GlobalPoolArgs&, ConstView x, View y) = 0;
  virtual void global_pool_backward(const GlobalPoolArgs&, ConstView dy, View dx) = 0;

  virtual void activation_forward(Activation, ConstView x, View y) = 0;                  // y may be x
  virtual void activation_backward(Activation, ConstView y, ConstView dy, View dx) = 0;  // from y; dx may be dy
  virtual void dropout_forward(const DropoutArgs&, ConstView x, View y) = 0;  // backward is the same op on dy
  virtual void lrn_forward(const LrnArgs&, ConstView x, View y) = 0;
  virtual void lrn_backward(const LrnArgs&, ConstView x, ConstView dy, View dx) = 0;
  virtual void shortcut_forward(const ShortcutArgs&, ConstView x, View y) = 0;
  virtual void shortcut_backward(const ShortcutArgs&, ConstView dy, View dx) = 0;
  virtual void flatten_forward(const FlattenArgs&, ConstView x, View y) = 0;
  virtual void flatten_backward(const FlattenArgs&, ConstView dy, View dx) = 0;
  virtual void add(ConstView x, View y) = 0;      // y += x
  virtual void convert(ConstView x, View y) = 0;  // to y's type, to nearest even

  virtual void embedding_forward(const EmbeddingArgs&, ConstView tokens, ConstView table, View y) = 0;
  // dtable[t] += dy[r] for every row r of token t, in the order of rows. The other tokens' rows are not touched.
  virtual void embedding_backward(const EmbeddingArgs&, ConstView tokens, ConstView dy, View dtable) = 0;

  // saved is memory of rnn_saved_bytes() that must reach backward untouched, which writes over it; null in evaluation.
  virtual size_t rnn_saved_bytes(const RnnArgs&) = 0;
  virtual void rnn_forward(const RnnArgs&, ConstView x, const RnnWeights&, const RnnState&, View y, View saved) = 0;
  // The state before the first step counts as given: no gradient goes there.
  virtual void rnn_backward(const RnnArgs&, ConstView x, const RnnWeights&, ConstView y, View saved, ConstView dy,
                            View dx, const RnnGradients&) = 0;

  // y = x where a step is valid, else 0; y may be x. Its gradient is the same op.
  virtual void sequence_mask(const SequenceArgs&, ConstView lengths, ConstView x, View y) = 0;
  // y[t] = x[n - 1 - t] for a stream of n valid steps, 0 behind them. Its gradient is the same op.
  virtual void sequence_reverse(const SequenceArgs&, ConstView lengths, ConstView x, View y) = 0;
  // saved: fp32 [2 * channels]. Evaluation is batch_norm_inference and sequence_mask.
  virtual void sequence_norm_forward(const SequenceNormArgs&, ConstView lengths, ConstView x, ConstView scale,
                                     ConstView shift, View running_mean, View running_var, View y, View saved) = 0;
  virtual void sequence_norm_backward(const SequenceNormArgs&, ConstView lengths, ConstView x, ConstView scale,
                                      ConstView saved, ConstView dy, View dx, View dscale, View dshift) = 0;
  virtual void lookahead_forward(const LookaheadArgs&, ConstView x, ConstView w, View y) = 0;
  virtual void lookahead_backward(const LookaheadArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw) = 0;
  virtual void transpose(const TransposeArgs&, ConstView x, View y) = 0;

  // stats: device memory [3], overwritten: sum of losses, utterances in it, utterances left out because their labels do
  // not fit into their valid steps (each label takes one, and one more lies between two equal ones). A stream without
  // valid steps counts as neither. Steps that are not valid and utterances left out get a gradient of 0. dlogits may be
  // null, but not the logits.
  virtual void ctc_loss(const CtcArgs&, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                        double* stats) = 0;

  // labels: i32 [rows]. stats: device memory [3], which may be args.before, overwritten: sum of losses, rows whose
  // label ranks first, rows whose label is in the top 5 (ties count against). dlogits may be null.
  virtual void softmax_cross_entropy(const CrossEntropyArgs&, ConstView logits, ConstView labels, View dlogits,
                                     double* stats) = 0;

  // The step as a whole (kernels/step_control.h). All pointers are to device memory.
  virtual void begin_step(const StepInput&, StepControl*, std::span<WorkerShare> local) = 0;
  // From all workers' shares, added in worker order: whether to skip, and the mean square (without the loss scale).
  virtual void judge_step(std::span<const WorkerShare> all, StepControl*) = 0;
  virtual void clip_scales(const ClipArgs&) = 0;
  virtual void copy_unless_skipped(const StepControl*, ConstView from, View to) = 0;
  virtual void copy_if_skipped(const StepControl*, ConstView from, View to) = 0;

  // The device's clock in nanoseconds, read in the order of its work; the same one for a backend and its lanes.
  virtual void read_clock(uint64_t* nanoseconds) = 0;
  virtual void add_overlap_time(const OverlapTimeArgs&) = 0;

  // Sum of squares in double, in the order that kernels/sum_order.h defines: the same bits on every backend. Not finite
  // exactly when an element is not (or is beyond 1e150).
  virtual void sum_squares(ConstView x, double* out) = 0;
  // out[i] = ((x0[i] + x1[i]) + x2[i]) + ...; out is none of them.
  virtual void ordered_sum(std::span<const float* const> x, float* out, int64_t n) = 0;
  virtual void sgd_step(const SgdArgs&, ConstView g, View m, View w) = 0;

  // The DGC step (kernels/dgc_args.h, docs/algorithm.md). A message is complete and sealed when dgc_compress is done.
  // It is canonical; dgc_encode and dgc_decode are for those that travel in another form.
  virtual void dgc_compress(const DgcCompressArgs&) = 0;
  virtual void dgc_encode(const DgcEncodeArgs&) = 0;
  virtual void dgc_decode(const DgcDecodeArgs&) = 0;
  virtual void dgc_apply(const DgcApplyArgs&) = 0;
  // What dgc_apply does, where the sum travels instead of the messages.
  virtual void dgc_scatter(const DgcScatterArgs&) = 0;
  virtual void dgc_step(const DgcStepArgs&) = 0;
  virtual void dgc_pack(const DgcPackArgs&) = 0;
  virtual void dgc_pack_half(const DgcPackHalfArgs&) = 0;
  virtual void dgc_sum_half(const DgcSumHalfArgs&) = 0;
  // Where every worker adds up a shard (kernels/dgc_deal.h): messages dealt out, summed, gathered again, and settled.
  virtual void dgc_deal(const DgcDealArgs&) = 0;
  virtual void dgc_sum_dealt(const DgcSumDealtArgs&) = 0;
  virtual void dgc_undeal(const DgcUndealArgs&) = 0;
  virtual void dgc_settle(const DgcSettleArgs&) = 0;
};

// A second queue of a device: tasks are done there one after another, while the owner goes on with other work.
class Lane {
 public:
  virtual ~Lane() = default;  // waits for what is under way and leaves out the rest
  // For tasks alone. What its device allocates may be used on the owner's too, and the other way round.
  virtual Backend& backend() const = 0;
  // The task comes after what the owner has asked of its backend so far. It may be called by another thread, now or
  // later.
  virtual void post(std::function<void()> task) = 0;
  // What the owner asks of its backend from now on comes after all tasks. Throws what the first one threw that did not
  // succeed; those behind it are left out, now and ever after.
  virtual void drain() = 0;
};

class Range {
 public:
  Range(Backend& backend, const char* name) : backend_(backend) {
    backend.begin_range(name);
    if (backend.observer != nullptr) backend.observer->begin(name);
  }
  ~Range() {
    if (backend_.observer != nullptr) backend_.observer->end();
    backend_.end_range();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Backend& backend_;
};

// threads: OpenMP threads per op (0: as many as cores). Must be used by the thread that made it.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);

// How matrix products and convolutions treat fp32 data; 16-bit data has only one way.
enum class Fp32Math { exact, tf32 };

// GPU number `index`. Throws UserError when this build has no CUDA, or this machine no such GPU or no driver.
std::unique_ptr<Backend> make_cuda_backend(int index, Fp32Math math);
// How many GPUs make_cuda_backend can use, 0 without a driver; and why there are none, or what they are, in one line.
int cuda_devices();
std::string cuda_description();

// "auto" (cuda:0 where there is one), "cpu" or "cuda:N". Throws UserError when that device is not here.
std::unique_ptr<Backend> make_backend(const std::string& device, int threads, Fp32Math math = Fp32Math::exact);

}  // namespace dgc
