#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv_plans.h"
#include "kernels/dgc_args.h"
#include "kernels/dgc_deal.h"
#include "kernels/op_args.h"
#include "kernels/step_control.h"
#include "tensor/device.h"
#include "tensor/view.h"

namespace dgc {

// This interface lists every op. An op takes a struct of named sizes and options (op_args.h) and views of the data. Of
// convolutions and recurrent layers the struct, or a part of it, also belongs to the key under which a backend caches
// what it has prepared. The layer that calls an op checks the shapes; a backend trusts them. op_args.h states the
// shapes of the views.
//
// Conventions, on every backend:
//   - Images are NHWC, weights lie in PyTorch's layout (tensor/shape.h).
//   - Parameters, statistics and their gradients are fp32. Activations and their gradients (x, y, residual, dx, dy,
//     logits) are all of one type, which a backend may offer in 16 bits (supports()); sums are fp32 or better.
//   - Outputs are overwritten. Gradients of PARAMETERS (dw, db, dscale, dshift) are ADDED to, so micro-batches
//   accumulate.
//   - A null dx or db view means that gradient is not wanted.
//   - Ops are deterministic: the same inputs and the same number of threads give the same bits.
//   - In a steady step, which calls the ops of the step before, no op takes memory of the device's or waits for it. On
//     the host there are short lists, and panels of products of a size that the caches set.

// Is told where the ranges (Range) of a step begin and end. A step that is observed is not recorded.
class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  virtual void begin(const char* name) = 0;
  virtual void end() = 0;
};

class Lane;

// Names a recording. Calls with equal keys queue the same work.
using RecordKey = std::vector<uint64_t>;

class Backend {
 public:
  virtual ~Backend() = default;
  RangeObserver* observer = nullptr;  // may be set between steps; while it is set, no step is recorded or replayed
  virtual std::string name() const = 0;
  virtual const std::shared_ptr<Device>& device() const = 0;
  virtual bool supports(DType activations) const = 0;
  virtual int threads() const = 0;  // that sums are split between; 0 on a GPU
  // What else decides how sums are rounded: a library with its version, and the kind of processor, as far as it chooses
  // other code for it. "oneDNN 2.6.3, AVX-512", "cuDNN 9.19.0, NVIDIA H200".
  virtual std::string arithmetic() const = 0;
  // Makes a lane of which this backend is the owner. The owner must outlive the lane.
  virtual std::unique_ptr<Lane> make_lane() = 0;
  // Makes `count` lanes for work that the owner waits for. No lane has priority over another, and each computes the
  // bits that the owner would.
  virtual std::vector<std::unique_ptr<Lane>> make_lanes(int count);

  // Give profilers a name for the work that is queued between the two calls (Range). `name` need not outlive the call.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;

  // Runs `body`, which must call the same ops in every call with this key. A backend may record the work that `body`
  // queues, and replay the recording in later calls: so `body` must not read results, and must do nothing on the host
  // that every step needs.
  virtual void run_recorded(const RecordKey& key, const std::function<void()>& body) = 0;
  // As run_recorded(), for a body with collectives, which all ranks have to record or replay in the same call. Throws
  // UserError where this rank has no memory for its recording, instead of calling the body as it is.
  virtual void run_recorded_together(const RecordKey& key, const std::function<void()>& body) {
    run_recorded(key, body);
  }

  // Runs `body`, the forward or the backward pass of a network, which reads these weights, does not change them, and
  // adds to each of these gradients at most once. A backend that wants weights in an order of its own may bring all of
  // them there at once, and may add all gradients at the end. Several passes over the same weights may lie within
  // another call, which names no gradients.
  virtual void with_filters(std::span<const FilterUse>, DType /*activations*/, const std::function<void()>& body) {
    body();
  }
  virtual void conv2d_forward(const Conv2dArgs&, ConstView x, ConstView w, ConstView b, View y) = 0;  // b may be null
  virtual void conv2d_backward_data(const Conv2dArgs&, ConstView dy, ConstView w, View dx) = 0;
  // Adds the gradient to dx. `spare`, of dx's shape, may be written over.
  virtual void conv2d_add_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View spare, View dx) {
    conv2d_backward_data(args, dy, w, spare);
    add(spare, dx);
  }
  virtual void conv2d_backward_weights(const Conv2dArgs&, ConstView x, ConstView dy, View dw, View db) = 0;

  virtual void linear_forward(const LinearArgs&, ConstView x, ConstView w, ConstView b, View y) = 0;  // b may be null
  virtual void linear_backward(const LinearArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                               View db) = 0;

  // batch_norm_forward normalises by the statistics of this batch, and updates the running statistics (with the
  // unbiased variance, as PyTorch does). `saved` has saved_bytes() bytes and must reach backward unchanged.
  virtual void batch_norm_forward(const BatchNormArgs&, ConstView x, ConstView residual, ConstView scale,
                                  ConstView shift, View running_mean, View running_var, View y, View saved) = 0;
  virtual void batch_norm_inference(const BatchNormArgs&, ConstView x, ConstView residual, ConstView scale,
                                    ConstView shift, ConstView mean, ConstView var, View y) = 0;
  // With relu and residual, the op first sets dy to 0 IN PLACE where the ReLU was 0: dy then is the gradient of the
  // residual too. y is read then only. dx may be dy, unless dy is that gradient.
  virtual void batch_norm_backward(const BatchNormArgs&, ConstView x, ConstView y, ConstView scale, ConstView saved,
                                   View dy, View dx, View dscale, View dshift) = 0;

  // `saved` has saved_bytes() bytes. It may be null in evaluation.
  virtual void pool_forward(const PoolArgs&, ConstView x, View y, View saved) = 0;
  virtual void pool_backward(const PoolArgs&, ConstView dy, ConstView saved, View dx) = 0;
  virtual void global_pool_forward(const GlobalPoolArgs&, ConstView x, View y) = 0;
  virtual void global_pool_backward(const GlobalPoolArgs&, ConstView dy, View dx) = 0;

  virtual void activation_forward(Activation, ConstView x, View y) = 0;                  // y may be x
  virtual void activation_backward(Activation, ConstView y, ConstView dy, View dx) = 0;  // needs y, not x; dx may be dy
  virtual void dropout_forward(const DropoutArgs&, ConstView x, View y) = 0;  // backward is the same op, applied to dy
  virtual void lrn_forward(const LrnArgs&, ConstView x, View y) = 0;
  virtual void lrn_backward(const LrnArgs&, ConstView x, ConstView dy, View dx) = 0;
  virtual void shortcut_forward(const ShortcutArgs&, ConstView x, View y) = 0;
  virtual void shortcut_backward(const ShortcutArgs&, ConstView dy, View dx) = 0;
  virtual void add(ConstView x, View y) = 0;                    // y += x
  virtual void subtract(ConstView a, ConstView b, View y) = 0;  // y = a - b, fp32; y may be a or b
  virtual void convert(ConstView x, View y) = 0;                // y = x in y's type, rounded to nearest even

  // A token that is no row of the table throws InternalError on a CPU. On a GPU its row of y is NaN, and
  // embedding_backward leaves it out.
  virtual void embedding_forward(const EmbeddingArgs&, ConstView tokens, ConstView table, View y) = 0;
  // dtable[t] += dy[r] for every row r whose token is t, in the order of r. Rows of dtable that no token names are left
  // alone.
  virtual void embedding_backward(const EmbeddingArgs&, ConstView tokens, ConstView dy, View dtable) = 0;

  // `saved` has rnn_saved_bytes() bytes. It must reach rnn_backward unchanged, which overwrites it. It is null in
  // evaluation. rnn_saved_bytes() throws UserError where recurrent layers cannot have activations of that type.
  virtual size_t rnn_saved_bytes(const RnnArgs&, DType activations) = 0;
  virtual void rnn_forward(const RnnArgs&, ConstView x, const RnnWeights&, const RnnState&, View y, View saved) = 0;
  // The state before the first step is treated as a constant, so it gets no gradient.
  virtual void rnn_backward(const RnnArgs&, ConstView x, const RnnWeights&, ConstView y, View saved, ConstView dy,
                            View dx, const RnnGradients&) = 0;

  // y = x where a step is valid, else 0. y may be x. The op is its own gradient.
  virtual void sequence_mask(const SequenceArgs&, ConstView lengths, ConstView x, View y) = 0;
  // y[t] = x[n - 1 - t] for a stream of n valid steps, and 0 behind them. The op is its own gradient.
  virtual void sequence_reverse(const SequenceArgs&, ConstView lengths, ConstView x, View y) = 0;
  // `saved` is fp32 [2 * channels]. Evaluation uses batch_norm_inference and sequence_mask instead.
  virtual void sequence_norm_forward(const SequenceNormArgs&, ConstView lengths, ConstView x, ConstView scale,
                                     ConstView shift, View running_mean, View running_var, View y, View saved) = 0;
  virtual void sequence_norm_backward(const SequenceNormArgs&, ConstView lengths, ConstView x, ConstView scale,
                                      ConstView saved, ConstView dy, View dx, View dscale, View dshift) = 0;
  virtual void lookahead_forward(const LookaheadArgs&, ConstView x, ConstView w, View y) = 0;
  virtual void lookahead_backward(const LookaheadArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw) = 0;
  virtual void transpose(const TransposeArgs&, ConstView x, View y) = 0;

  // `stats` is device memory [3], which is overwritten: the sum of losses, the number of utterances in that sum, and
  // the number of utterances that are left out because their labels do not fit into their valid steps (each label takes
  // a step, and two equal labels in a row need one more between them). A stream without valid steps counts as neither.
  // Steps that are not valid and utterances that are left out get a gradient of 0. dlogits may be null; it must not be
  // the logits' memory.
  virtual void ctc_loss(const CtcArgs&, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                        double* stats) = 0;

  // `labels` is i32 [rows]. `stats` is device memory [3], which is overwritten and may be args.before: the sum of
  // losses, the number of rows whose label ranks first, and of rows whose label is in the top 5. Of equal
  // scores the first ranks first, as in argmax, and a label without a score that is a number last. dlogits
  // may be null, and may be the logits' memory. A label that is no class throws InternalError on a CPU; on a GPU the
  // loss and the row's gradient are NaN.
  virtual void softmax_cross_entropy(const CrossEntropyArgs&, ConstView logits, ConstView labels, View dlogits,
                                     double* stats) = 0;

  // These ops belong to the step as a whole (kernels/step_control.h). All pointers are to device memory.
  virtual void begin_step(const StepInput&, StepControl*, std::span<WorkerShare> local) = 0;
  // Adds all workers' shares in worker order, and sets control->skip and control->mean_square (without the loss scale).
  virtual void judge_step(std::span<const WorkerShare> all, StepControl*) = 0;
  virtual void clip_scales(const ClipArgs&) = 0;
  virtual void copy_unless_skipped(const StepControl*, ConstView from, View to) = 0;
  virtual void copy_if_skipped(const StepControl*, ConstView from, View to) = 0;
  virtual void add_loss(const LossStats* more, LossStats* sum) = 0;  // *sum += *more

  // Reads the device's clock, in nanoseconds, when all earlier work is done. A backend and its lanes share one clock.
  virtual void read_clock(uint64_t* nanoseconds) = 0;
  virtual void add_overlap_time(const OverlapTimeArgs&) = 0;

  // out = the sum of squares in double, in the order that kernels/sum_order.h defines, so that every backend gives the
  // same bits. The sum is not finite exactly when an element of x is not finite.
  virtual void sum_squares(ConstView x, double* out) = 0;
  // out[i] = ((x0[i] + x1[i]) + x2[i]) + ... `out` is none of the summands.
  virtual void ordered_sum(std::span<const float* const> x, float* out, int64_t n) = 0;
  virtual void sgd_step(const SgdArgs&, ConstView g, View m, View w) = 0;

  // The DGC step (kernels/dgc_args.h, docs/algorithm.md). dgc_compress makes a complete message with its checksum, in
  // the canonical format. dgc_encode and dgc_decode convert messages that travel in another format.
  virtual void dgc_compress(const DgcCompressArgs&) = 0;
  virtual void dgc_encode(const DgcEncodeArgs&) = 0;
  virtual void dgc_decode(const DgcDecodeArgs&) = 0;
  virtual void dgc_apply(const DgcApplyArgs&) = 0;
  // dgc_scatter and dgc_step do what dgc_apply does, where the sum travels and not the messages.
  virtual void dgc_scatter(const DgcScatterArgs&) = 0;
  virtual void dgc_step(const DgcStepArgs&) = 0;
  virtual void dgc_pack(const DgcPackArgs&) = 0;
  virtual void dgc_pack_half(const DgcPackHalfArgs&) = 0;
  virtual void dgc_sum_half(const DgcSumHalfArgs&) = 0;
  // Split and reduce (kernels/dgc_deal.h): messages are dealt out to the owners of shards, summed there, gathered and
  // settled.
  virtual void dgc_deal(const DgcDealArgs&) = 0;
  virtual void dgc_sum_dealt(const DgcSumDealtArgs&) = 0;
  virtual void dgc_undeal(const DgcUndealArgs&) = 0;
  virtual void dgc_settle(const DgcSettleArgs&) = 0;
};

// A second queue of a device. It does its tasks one after another, while the owner goes on with other work.
class Lane {
 public:
  virtual ~Lane() = default;  // waits for the task under way and drops the rest
  // The backend that tasks use, and nobody else. Memory of its device may be used on the owner's device, and the other
  // way round.
  virtual Backend& backend() const = 0;
  // Adds a task, which waits for all work that the owner has queued on its own backend so far. The task may be called
  // by another thread, at once or later.
  virtual void post(std::function<void()> task) = 0;
  // All work that the owner queues on its own backend from now on waits for all tasks. Rethrows what the first failed
  // task threw; tasks behind a failed one are never called.
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

// How matrix products and convolutions compute with fp32 data: in fp32, or with factors rounded to TF32 (GPUs that have
// it) or to bf16 (processors). Sums are fp32 in any case.
enum class Fp32Math { exact, tf32, bf16 };

// `threads` is the number of OpenMP threads of an op; 0 means usable_cores(). Only the thread that made the
// backend may use it. With bf16, products of recurrent states and weights within a step of time stay exact.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, Fp32Math math = Fp32Math::exact);
bool cpu_multiplies_bf16();  // whether the processor has instructions for it: AVX-512 BF16 or AMX

// Makes the backend of GPU number `index`. Throws UserError when the build has no CUDA, when the machine has no driver
// or no such GPU, or when `plans`, if not null, are not for this GPU and its cuDNN. Only the thread that made the
// backend may use it.
std::unique_ptr<Backend> make_cuda_backend(int index, Fp32Math math,
                                           const std::shared_ptr<const ConvPlans>& plans = nullptr);
ConvTimings time_convolutions(
    int index, Fp32Math math, std::span<const PlannedConv>,
    const ConvTimed& = [](const auto&) {});  // throws UserError likewise
// cuda_devices() has the numbers of the GPUs that make_cuda_backend can use, none without a driver. cuda_description()
// names them, or says why there are none, in one line.
std::vector<int> cuda_devices();
std::string cuda_description();

// Whether a device is the processor, by its name. "auto" depends on this machine.
bool is_cpu(const std::string& device);
// Makes the backend of a device by its name: "auto" (the first GPU that can be used, else cpu), "cpu" or "cuda:N".
// Throws UserError when the name is none of these, or when the machine lacks the device. Only a GPU looks at the plans.
std::unique_ptr<Backend> make_backend(const std::string& device, int threads, Fp32Math math = Fp32Math::exact,
                                      const std::shared_ptr<const ConvPlans>& plans = nullptr);
// Times all plans of each convolution on an idle GPU, on images and filters of zeros. Throws UserError for a processor.
ConvTimings time_convolutions(
    const std::string& device, Fp32Math math, std::span<const PlannedConv>, const ConvTimed& = [](const auto&) {});

}  // namespace dgc
