#pragma once

#include <cstddef>
#include <memory>

#include "kernels/backend.h"

namespace dgc {

struct DgcScratch;  // dgc_scratch.h
struct DnnlCache;   // dnnl_cache.h
struct PreparedConv;

// The backend of the processor: oneDNN for convolutions and matrix products, OpenMP loops for the rest. The bodies lie
// in one file per group of ops. It belongs to the thread that made it: OpenMP's number of threads is a property of a
// thread.
class CpuBackend : public Backend {
 public:
  explicit CpuBackend(int threads) : CpuBackend(threads, make_cpu_device()) {}
  CpuBackend(int threads, std::shared_ptr<Device> device);
  ~CpuBackend() override;

  std::string name() const override { return "cpu"; }
  const std::shared_ptr<Device>& device() const override { return device_; }
  bool supports(DType activations) const override { return activations == DType::f32; }
  std::unique_ptr<Lane> make_lane() override;
  void begin_range(const char*) override {}
  void end_range() override {}
  void run_recorded(uint64_t, const std::function<void()>& body) override { body(); }
  int threads() const { return threads_; }

  void conv2d_forward(const Conv2dArgs&, ConstView x, ConstView w, ConstView b, View y) override;
  void conv2d_backward_data(const Conv2dArgs&, ConstView dy, ConstView w, View dx) override;
  void conv2d_backward_weights(const Conv2dArgs&, ConstView x, ConstView dy, View dw, View db) override;

  void linear_forward(const LinearArgs&, ConstView x, ConstView w, ConstView b, View y) override;
  void linear_backward(const LinearArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw, View db) override;

  size_t batch_norm_saved_bytes(const BatchNormArgs&) override;
  void batch_norm_forward(const BatchNormArgs&, ConstView x, ConstView residual, ConstView scale, ConstView shift,
                          View running_mean, View running_var, View y, View saved) override;
  void batch_norm_inference(const BatchNormArgs&, ConstView x, ConstView residual, ConstView scale, ConstView shift,
                            ConstView mean, ConstView var, View y) override;
  void batch_norm_backward(const BatchNormArgs&, ConstView x, ConstView y, ConstView scale, ConstView saved, View dy,
                           View dx, View dscale, View dshift) override;

  size_t pool_saved_bytes(const PoolArgs&) override;
  void pool_forward(const PoolArgs&, ConstView x, View y, View saved) override;
  void pool_backward(const PoolArgs&, ConstView dy, ConstView saved, View dx) override;
  void global_pool_forward(const GlobalPoolArgs&, ConstView x, View y) override;
  void global_pool_backward(const GlobalPoolArgs&, ConstView dy, View dx) override;

  void activation_forward(Activation, ConstView x, View y) override;
  void activation_backward(Activation, ConstView y, ConstView dy, View dx) override;
  void dropout_forward(const DropoutArgs&, ConstView x, View y) override;
  void lrn_forward(const LrnArgs&, ConstView x, View y) override;
  void lrn_backward(const LrnArgs&, ConstView x, ConstView dy, View dx) override;
  void shortcut_forward(const ShortcutArgs&, ConstView x, View y) override;
  void shortcut_backward(const ShortcutArgs&, ConstView dy, View dx) override;
  void flatten_forward(const FlattenArgs&, ConstView x, View y) override;
  void flatten_backward(const FlattenArgs&, ConstView dy, View dx) override;
  void add(ConstView x, View y) override;
  void convert(ConstView x, View y) override;

  void embedding_forward(const EmbeddingArgs&, ConstView tokens, ConstView table, View y) override;
  void embedding_backward(const EmbeddingArgs&, ConstView tokens, ConstView dy, View dtable) override;
  size_t rnn_saved_bytes(const RnnArgs&) override;
  void rnn_forward(const RnnArgs&, ConstView x, const RnnWeights&, const RnnState&, View y, View saved) override;
  void rnn_backward(const RnnArgs&, ConstView x, const RnnWeights&, ConstView y, View saved, ConstView dy, View dx,
                    const RnnGradients&) override;

  void sequence_mask(const SequenceArgs&, ConstView lengths, ConstView x, View y) override;
  void sequence_reverse(const SequenceArgs&, ConstView lengths, ConstView x, View y) override;
  void sequence_norm_forward(const SequenceNormArgs&, ConstView lengths, ConstView x, ConstView scale, ConstView shift,
                             View running_mean, View running_var, View y, View saved) override;
  void sequence_norm_backward(const SequenceNormArgs&, ConstView lengths, ConstView x, ConstView scale, ConstView saved,
                              ConstView dy, View dx, View dscale, View dshift) override;
  void lookahead_forward(const LookaheadArgs&, ConstView x, ConstView w, View y) override;
  void lookahead_backward(const LookaheadArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw) override;
  void transpose(const TransposeArgs&, ConstView x, View y) override;
  void ctc_loss(const CtcArgs&, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                double* stats) override;

  void softmax_cross_entropy(const CrossEntropyArgs&, ConstView logits, ConstView labels, View dlogits,
                             double* stats) override;

  void begin_step(const StepInput&, StepControl*, std::span<WorkerShare> local) override;
  void judge_step(std::span<const WorkerShare> all, StepControl*) override;
  void clip_scales(const ClipArgs&) override;
  void copy_unless_skipped(const StepControl*, ConstView from, View to) override;
  void copy_if_skipped(const StepControl*, ConstView from, View to) override;

  void read_clock(uint64_t* nanoseconds) override;
  void add_overlap_time(const OverlapTimeArgs&) override;

  void sum_squares(ConstView x, double* out) override;
  void ordered_sum(std::span<const float* const> x, float* out, int64_t n) override;
  void sgd_step(const SgdArgs&, ConstView g, View m, View w) override;

  void dgc_compress(const DgcCompressArgs&) override;
  void dgc_encode(const DgcEncodeArgs&) override;
  void dgc_decode(const DgcDecodeArgs&) override;
  void dgc_apply(const DgcApplyArgs&) override;
  void dgc_scatter(const DgcScatterArgs&) override;
  void dgc_step(const DgcStepArgs&) override;
  void dgc_pack(const DgcPackArgs&) override;
  void dgc_pack_half(const DgcPackHalfArgs&) override;
  void dgc_sum_half(const DgcSumHalfArgs&) override;
  void dgc_deal(const DgcDealArgs&) override;
  void dgc_sum_dealt(const DgcSumDealtArgs&) override;
  void dgc_undeal(const DgcUndealArgs&) override;
  void dgc_settle(const DgcSettleArgs&) override;

 private:
  std::byte* scratch(size_t bytes);  // 64-byte aligned; grows, never shrinks; valid until the next call
  float* scratch_floats(int64_t count);
  std::byte* load_weights(const PreparedConv&, ConstView w);  // returns the scratch that is left

  int threads_;
  std::shared_ptr<Device> device_;
  Buffer scratch_;
  std::unique_ptr<DnnlCache> dnnl_;
  std::unique_ptr<DgcScratch> dgc_scratch_;
};

}  // namespace dgc
