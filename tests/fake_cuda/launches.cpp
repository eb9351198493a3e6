// Launches of our own kernels, which the emulation executes when their turn comes.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tests/fake_cuda/kernels.h"
#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {
namespace {

constexpr size_t kMostStaticShared = 48 << 10, kSharedOfMultiprocessor = 228 << 10, kSharedOfSystem = 1 << 10;
constexpr int kMostThreadsOfMultiprocessor = 2048;
constexpr size_t kMostArgs = 32764;  // since compute capability 7.0

std::unordered_map<const void*, Kernel>& kernels() {
  static std::unordered_map<const void*, Kernel> all;
  return all;
}

const Kernel& kernel_of(const void* function) {
  const auto found = kernels().find(function);
  if (found == kernels().end()) refuse(cudaErrorInvalidDeviceFunction, "there is no such kernel");
  return found->second;
}

int blocks_at_once(const Kernel& kernel) {
  const auto by_shared = static_cast<int>(kSharedOfMultiprocessor / (kernel.shared_bytes + kSharedOfSystem));
  return std::min({machine().options.most_blocks, by_shared, kMostThreadsOfMultiprocessor / kernel.block});
}

struct alignas(64) Line {
  std::byte bytes[64];
};

void launch(const cudaLaunchConfig_t& config, const Kernel& kernel, const void* args) {
  Machine& m = machine();
  const dim3 grid = config.gridDim, block = config.blockDim;
  if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1) {
    refuse(cudaErrorInvalidConfiguration, "{}: the emulation has one dimension", kernel.name);
  }
  if (grid.x == 0 || grid.x > 0x7fffffff || block.x != static_cast<unsigned>(kernel.block)) {
    refuse(cudaErrorInvalidConfiguration, "{}: {} blocks of {} threads", kernel.name, grid.x, block.x);
  }
  if (kernel.shared_bytes + config.dynamicSmemBytes > kMostStaticShared || kernel.args_bytes > kMostArgs) {
    refuse(cudaErrorInvalidConfiguration, "{}: {} bytes of shared memory, {} of arguments", kernel.name,
           kernel.shared_bytes, kernel.args_bytes);
  }
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    if (attribute.id != cudaLaunchAttributeCooperative) refuse(cudaErrorInvalidValue, "an attribute is unknown");
    const auto most = static_cast<unsigned>(blocks_at_once(kernel) * m.options.multiprocessors);
    if (attribute.val.cooperative != 0 && grid.x > most) {
      refuse(cudaErrorCooperativeLaunchTooLarge, "{}: {} of {} blocks", kernel.name, grid.x, most);
    }
  }
  std::vector<Line> copy(kernel.args_bytes / sizeof(Line) + 1);
  std::memcpy(copy.data(), args, kernel.args_bytes);
  const auto run = [kernel, copy = std::move(copy), grid, block] {
    kernel.emulate(copy.data(), {.grid = grid.x, .block = block.x, .seed = machine().draw(1u << 30)});
  };
  m.enqueue(config.stream, {.name = kernel.name, .run = run, .blocks = grid.x});
}

}  // namespace

bool register_kernel(const void* host_function, const Kernel& kernel) {
  return kernels().emplace(host_function, kernel).second;
}

}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  return runtime_call("cudaLaunchKernelExC", WhileCapturing::allowed,
                      [&] { launch(*config, kernel_of(function), args[0]); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block, size_t,
                                                                   unsigned) {
  return runtime_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", WhileCapturing::allowed, [&] {
    const Kernel& kernel = kernel_of(function);
    if (block != kernel.block) refuse(cudaErrorInvalidValue, "{} is compiled for other blocks", kernel.name);
    *blocks = blocks_at_once(kernel);
  });
}
