#include "kernels/cuda/cuda_backend.h"

#include <fmt/core.h>
#include <nvtx3/nvToolsExt.h>

#include <limits>
#include <utility>

#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/filter_bank.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/rnn_cache.h"
#include "kernels/cuda/stream_lane.h"

namespace dgc {

CudaBackend::CudaBackend(const std::shared_ptr<CudaDevice>& device, Fp32Math math,
                         std::shared_ptr<const ConvPlans> plans)
    : CudaBackend(device, math, std::numeric_limits<int64_t>::max(),
                  std::make_shared<cuda::ConvCache>(math, std::move(plans), *device),
                  std::make_shared<std::atomic<size_t>>()) {}

CudaBackend::CudaBackend(const CudaBackend& owner, std::shared_ptr<CudaDevice> device, int64_t most_cooperative_blocks)
    : CudaBackend(std::move(device), owner.math_, most_cooperative_blocks, owner.convolutions_,
                  owner.graphs_->nodes()) {}

CudaBackend::CudaBackend(std::shared_ptr<CudaDevice> device, Fp32Math math, int64_t most_cooperative_blocks,
                         std::shared_ptr<cuda::ConvCache> convolutions, std::shared_ptr<std::atomic<size_t>> nodes)
    : cuda_device_(std::move(device)),
      device_(cuda_device_),
      math_(math),
      most_cooperative_blocks_(most_cooperative_blocks),
      libraries_(std::make_shared<cuda::Libraries>(cuda_device_)),
      convolutions_(std::move(convolutions)),
      filters_(std::make_shared<cuda::FilterBank>()),
      rnns_(std::make_shared<cuda::RnnCache>(cuda_device_, math)),
      dgc_(std::make_shared<cuda::DgcScratch>(device_)),
      graphs_(std::make_shared<cuda::Graphs>(*cuda_device_, std::move(nodes))) {}

CudaBackend::~CudaBackend() = default;

std::string CudaBackend::arithmetic() const {
  return fmt::format("cuDNN {}, {}", cuda::cudnn_version(), cuda_device_->model());
}

std::unique_ptr<Lane> CudaBackend::make_lane() {
  return std::make_unique<cuda::StreamLane>(*this, cuda_device_, cuda_device_->make_beside());
}

std::vector<std::unique_ptr<Lane>> CudaBackend::make_lanes(int count) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < count; ++i) {
    auto beside = cuda_device_->make_beside(CudaDevice::Priority::same);
    lanes.push_back(std::make_unique<cuda::StreamLane>(*this, cuda_device_, std::move(beside)));
  }
  return lanes;
}

std::byte* CudaBackend::workspace(size_t bytes) { return at_least(bytes, workspace_, device_, MemoryUse::scratch); }

void CudaBackend::with_filters(std::span<const FilterUse> uses, DType activations, const std::function<void()>& body) {
  try {
    filters_->open(*this, activations, uses);
    body();
    filters_->close(*this);
  } catch (...) {
    filters_->drop();
    throw;
  }
}

void CudaBackend::begin_range(const char* name) { nvtxRangePushA(name); }
void CudaBackend::end_range() { nvtxRangePop(); }

std::unique_ptr<Backend> make_cuda_backend(int index, Fp32Math math, const std::shared_ptr<const ConvPlans>& plans) {
  return std::make_unique<CudaBackend>(std::make_shared<CudaDevice>(index), math, plans);
}

std::vector<int> cuda_devices() { return find_cuda_devices().usable; }
std::string cuda_description() { return find_cuda_devices().description; }

}  // namespace dgc
