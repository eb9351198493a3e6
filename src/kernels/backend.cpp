#include "kernels/backend.h"

#include <charconv>
#include <string_view>

#include "tensor/errors.h"

namespace dgc {
namespace {

// N of "cuda:N", or -1.
int cuda_index(std::string_view device) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!device.starts_with(kPrefix)) return -1;
  const char* const end = device.data() + device.size();
  int index = -1;
  const auto [rest, error] = std::from_chars(device.data() + kPrefix.size(), end, index);
  return error == std::errc() && rest == end ? index : -1;
}

// The number of the GPU that a device is which is no processor.
int gpu_number(const std::string& device) {
  const int index = device == "auto" ? cuda_devices().at(0) : cuda_index(device);
  if (index < 0) throw_user_error("device: '{}' is none of \"auto\", \"cpu\" and \"cuda:N\"", device);
  return index;
}

// Only a processor rounds factors of fp32 to bf16.
Fp32Math on_gpu(Fp32Math math) { return math == Fp32Math::bf16 ? Fp32Math::exact : math; }

}  // namespace

std::vector<std::unique_ptr<Lane>> Backend::make_lanes(int count) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < count; ++i) lanes.push_back(make_lane());
  return lanes;
}

bool is_cpu(const std::string& device) { return device == "cpu" || (device == "auto" && cuda_devices().empty()); }

std::unique_ptr<Backend> make_backend(const std::string& device, int threads, Fp32Math math,
                                      const std::shared_ptr<const ConvPlans>& plans) {
  if (is_cpu(device)) return make_cpu_backend(threads, math);
  return make_cuda_backend(gpu_number(device), on_gpu(math), plans);
}

ConvTimings time_convolutions(const std::string& device, Fp32Math math, std::span<const PlannedConv> convolutions,
                              const ConvTimed& timed) {
  if (is_cpu(device))
    throw_user_error("device: only a GPU has several plans for a convolution ({})", cuda_description());
  return time_convolutions(gpu_number(device), on_gpu(math), convolutions, timed);
}

}  // namespace dgc
