#pragma once

#include <cstddef>
#include <memory>

#include "kernels/backend.h"
#include "tensor/device_cuda.h"

namespace dgc {

namespace cuda {
class ConvCache;   // conv_cache.h
class Graphs;      // graphs.h
class Queue;       // queue.h
class DgcScratch;  // dgc_memory.h
class RnnCache;    // rnn_cache.h
struct Libraries;  // libraries.h
}  // namespace cuda

// The backend of one GPU: cuDNN for convolutions and recurrent layers, cuBLAS for matrix products, our own kernels for
// the rest. The bodies lie in one file per group of ops. All work is queued on stream(), in order, but for what its
// lanes do. It belongs to the thread that made it.
class CudaBackend final : public Backend {
 public:
  CudaBackend(int index, Fp32Math math);
  // most_cooperative_blocks: of a cooperative launch, which begins when all of its blocks find room at once.
  CudaBackend(std::shared_ptr<CudaDevice>, Fp32Math, int64_t most_cooperative_blocks);
  ~CudaBackend() override;

  std::string name() const override { return "cuda"; }
  const std::shared_ptr<Device>& device() const override { return device_; }
  bool supports(DType activations) const override { return activations != DType::i32; }
  std::unique_ptr<Lane> make_lane() override;

  void begin_range(const char* name) override;
  void end_range() override;
  void run_recorded(uint64_t key, const std::function<void()>& body) override;

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
  friend class cuda::Queue;

  CUstream_st* stream() const { return cuda_device_->stream(); }

  // Scratch of one op: 256-byte aligned, dirty, grows and never shrinks, valid until the next call. The next op on the
  // stream may reuse it. Ask once per op for all it needs.
  std::byte* workspace(size_t bytes);
  const void* weights_as(DType, ConstView w);  // for matrix products; may take the workspace
  // Counters that kernels find at 0 and leave at 0 (last_block.cuh).
  unsigned* tickets();

  std::shared_ptr<CudaDevice> cuda_device_;
  std::shared_ptr<Device> device_;  // the same one
  Fp32Math math_;
  int64_t most_cooperative_blocks_;
  Buffer workspace_;
  Buffer tickets_;
  // Each is made and known by the files of its ops alone.
  std::shared_ptr<cuda::Libraries> libraries_;
  std::shared_ptr<cuda::ConvCache> convolutions_;
  std::shared_ptr<cuda::RnnCache> rnns_;
  std::shared_ptr<cuda::DgcScratch> dgc_;  // made by the first dgc_compress
  std::shared_ptr<cuda::Graphs> graphs_;
};

}  // namespace dgc
