// In the place of kernels/cuda in a build without CUDA.
#include "kernels/backend.h"
#include "tensor/errors.h"

namespace dgc {

std::unique_ptr<Backend> make_cuda_backend(int index, Fp32Math, const std::shared_ptr<const ConvPlans>&) {
  throw_user_error("device: 'cuda:{}' is not available: {}", index, cuda_description());
}

ConvTimings time_convolutions(int index, Fp32Math, std::span<const PlannedConv>, const ConvTimed&) {
  throw_user_error("device: 'cuda:{}' is not available: {}", index, cuda_description());
}

std::vector<int> cuda_devices() { return {}; }
std::string cuda_description() { return "built without CUDA"; }

}  // namespace dgc
