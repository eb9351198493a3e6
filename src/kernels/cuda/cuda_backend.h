#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "kernels/backend.h"
#include "tensor/device_cuda.h"

namespace dgc {

namespace cuda {
class ConvCache;   // conv_cache.h
class ConvPlan;    // conv_cache.h
class Graphs;      // graphs.h
class Queue;       // queue.h
class DgcScratch;  // dgc_memory.h
class FilterBank;  // filter_bank.h
class Libraries;   // libraries.h
class RnnCache;    // rnn_cache.h
}  // namespace cuda

// The backend of one GPU: cuDNN for convolutions and recurrent layers, cuBLAS for matrix products, our own kernels for
// the rest. The bodies lie in one file per group of ops. All work is queued on stream(), in order, except for
// the work of lanes. Only the thread that made the backend may use it.
class CudaBackend final : public Backend {
 public:
  CudaBackend(const std::shared_ptr<CudaDevice>&, Fp32Math, std::shared_ptr<const ConvPlans>);
  // A backend on another stream, which takes the same plans. most_cooperative_blocks bounds the grid of cooperative
  // launches, which begin only when all of their blocks find room on the GPU at once.
  CudaBackend(const CudaBackend& owner, std::shared_ptr<CudaDevice>, int64_t most_cooperative_blocks);
  ~CudaBackend() override;

  std::string name() const override { return "cuda"; }
  const std::shared_ptr<Device>& device() const override { return device_; }
  bool supports(DType activations) const override { return activations != DType::i32; }
  int threads() const override { return 0; }
  std::string arithmetic() const override;
  std::unique_ptr<Lane> make_lane() override;  // its work goes first
  std::vector<std::unique_ptr<Lane>> make_lanes(int count) override;

  void begin_range(const char* name) override;
  void end_range() override;
  void run_recorded(const RecordKey& key, const std::function<void()>& body) override;
  void run_recorded_together(const RecordKey& key, const std::function<void()>& body) override;
  void with_filters(std::span<const FilterUse>, DType activations, const std::function<void()>& body) override;
  void conv2d_add_backward_data(const Conv2dArgs&, ConstView dy, ConstView w, View spare, View dx) override;

#include "kernels/kernel_ops.inc"
#include "kernels/library_ops.inc"

 private:
  friend class cuda::Queue;

  CUstream_st* stream() const { return cuda_device_->stream(); }

  // Returns scratch memory for one op: aligned to 256 bytes, not zeroed, valid until the next call. An op must ask once
  // for all that it needs, because the next op on the stream uses the same memory. The memory grows and never shrinks.
  std::byte* workspace(size_t bytes);
  const void* weights_as(DType, ConstView w);  // w in this type, for matrix products; may use the workspace
  // The filter of a convolution as cuDNN wants it, and workspace of so many bytes.
  struct FilterMemory {
    const void* filter;
    std::byte* scratch;
  };
  FilterMemory filter_memory(const Conv2dArgs&, ConstView w, DType, size_t scratch_bytes);
  // Lets `queue` run the plan of a pass. False: there is none, or x or y does not begin as plans ask.
  bool with_plan(const PlannedConv&, const void* x, const void* y,
                 const std::function<void(const cuda::ConvPlan&)>& queue);
  // A pass that reads a filter, by cuDNN, with w as the filter. False: cuDNN does not do it, and nothing is queued.
  bool run_plan(const PlannedConv&, const void* x, ConstView w, const void* y);
  bool run_plan_with_bias(const Conv2dArgs&, ConstView x, ConstView w, ConstView b, View y);

  CudaBackend(std::shared_ptr<CudaDevice>, Fp32Math, int64_t most_cooperative_blocks, std::shared_ptr<cuda::ConvCache>,
              std::shared_ptr<std::atomic<size_t>> graph_nodes);

  std::shared_ptr<CudaDevice> cuda_device_;
  std::shared_ptr<Device> device_;  // the same object as cuda_device_
  Fp32Math math_;
  int64_t most_cooperative_blocks_;
  Buffer workspace_;
  Buffer tickets_;  // counters that kernels find at 0 and leave at 0 (last_block.cuh); as many as were asked for
  // Only the files of the ops that use them include the headers of these types.
  std::shared_ptr<cuda::Libraries> libraries_;
  std::shared_ptr<cuda::ConvCache> convolutions_;  // shared with lanes
  std::shared_ptr<cuda::FilterBank> filters_;
  std::shared_ptr<cuda::RnnCache> rnns_;
  std::shared_ptr<cuda::DgcScratch> dgc_;
  std::shared_ptr<cuda::Graphs> graphs_;
};

}  // namespace dgc
