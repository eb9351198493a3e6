#include "tensor/device_cuda.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <utility>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr int kOrdinary = 0;     // a stream's priority; negative ones go first
constexpr int kOldestMajor = 8;  // what the kernels are compiled for (CMAKE_CUDA_ARCHITECTURES)

// These come from a kernel that was queued earlier; the call that reports them only met them.
bool is_from_a_kernel(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

double gib(size_t bytes) { return static_cast<double>(bytes) / (1u << 30); }

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return properties;
}

std::string describe(int index) {
  const cudaDeviceProp properties = properties_of(index);
  return fmt::format("cuda:{} {}, compute capability {}.{}, {:.1f} GiB", index, properties.name, properties.major,
                     properties.minor, gib(properties.totalGlobalMem));
}

int present(int index) {
  const CudaDevices found = find_cuda_devices();
  if (std::ranges::find(found.usable, index) != found.usable.end()) return index;
  throw_user_error("device: 'cuda:{}' is not available: {}", index, found.description);
}

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

void check_cuda(int error, const char* call) {
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaSuccess) return;
  if (code == cudaErrorMemoryAllocation) throw_gpu_is_full(call);
  if (code == cudaErrorDevicesUnavailable) {
    throw_user_error("the GPU is busy, as another process may have it for itself; nvidia-smi says which one");
  }
  // The second: there is PTX alone for this GPU, and the toolkit that made it is newer than the driver.
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion) {
    throw_user_error(
        "this dgc has no code that this GPU and its driver can run; build it in a fresh folder with CUDAARCHS=native "
        "scripts/build");
  }
  // CUDA_LAUNCH_BLOCKING=1 is no advice: it waits for a recorded step as a whole, and over NCCL ranks may hang.
  constexpr const char* kAdvice =
      "; the fault is in a kernel queued before it, which the same command behind "
      "\"compute-sanitizer --tool memcheck\" will find";
  throw InternalError(fmt::format("CUDA: {}: {} ({}){}", call, cudaGetErrorString(code), cudaGetErrorName(code),
                                  is_from_a_kernel(code) ? kAdvice : ""));
}

void throw_gpu_is_full(const char* call) {
  throw_user_error(
      "out of memory on the GPU, in {}; nvidia-smi lists who holds memory there; lower training.batch_per_worker, and "
      "set workers_at_once to 1",
      call);
}

CudaDevices find_cuda_devices() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  int present = 0;
  const cudaError_t error = cudaGetDeviceCount(&present);
  cudaGetLastError();  // a machine without a GPU is no error
  if (driver == 0) return {{}, "no NVIDIA driver"};
  if (error == cudaErrorInsufficientDriver) {
    return {{}, fmt::format("the NVIDIA driver is for CUDA {}, this build for {}", version(driver), version(runtime))};
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && present == 0)) {
    return {{}, "there is an NVIDIA driver, but no GPU that it may use (CUDA_VISIBLE_DEVICES?)"};
  }
  if (error != cudaSuccess) return {{}, fmt::format("the NVIDIA driver says: {}", cudaGetErrorString(error))};

  CudaDevices found;
  std::string too_old;
  for (int i = 0; i < present; ++i) {
    int major = 0;
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i), "cudaDeviceGetAttribute");
    if (major >= kOldestMajor) {
      found.usable.push_back(i);
      found.description += describe(i) + "; ";
    } else {
      too_old += (too_old.empty() ? "" : "; ") + describe(i);
    }
  }
  if (!too_old.empty()) too_old += fmt::format(" is too old: compute capability {}.0 is needed", kOldestMajor);
  if (found.usable.empty()) return {{}, too_old};
  if (!too_old.empty()) found.description += too_old + "; ";
  found.description += fmt::format("driver for CUDA {}, runtime {}", version(driver), version(runtime));
  return found;
}

CudaDevice::CudaDevice(int index) : CudaDevice(present(index), std::make_shared<Memory>(), kOrdinary) {}

// The object is complete before its body runs, so the destructor clears up after a failure in the body.
CudaDevice::CudaDevice(int index, std::shared_ptr<Memory> memory, int priority) : CudaDevice(index, std::move(memory)) {
  use();
  check_cuda(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, index),
             "cudaDeviceGetAttribute");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
  check_cuda(cudaStreamCreateWithFlags(&copying_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check_cuda(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

// Priority over this stream is for what other ranks wait for.
std::shared_ptr<CudaDevice> CudaDevice::make_beside(Priority priority) const {
  use();
  if (priority == Priority::same) return std::shared_ptr<CudaDevice>(new CudaDevice(index_, memory_, kOrdinary));
  int least = 0, most = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
  return std::shared_ptr<CudaDevice>(new CudaDevice(index_, memory_, most));
}

void CudaDevice::follow(const CudaDevice& other) {
  check_cuda(cudaEventRecord(other.reached_, other.stream_), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(stream_, other.reached_, 0), "cudaStreamWaitEvent");
}

// Nothing here may throw: it also runs while an error is on its way out, when CUDA refuses every call.
CudaDevice::~CudaDevice() {
  if (reached_ != nullptr) cudaEventDestroy(reached_);
  if (copying_ != nullptr) cudaStreamDestroy(copying_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void CudaDevice::use() const { check_cuda(cudaSetDevice(index_), "cudaSetDevice"); }

size_t CudaDevice::total_bytes() const { return properties_of(index_).totalGlobalMem; }
size_t CudaDevice::free_bytes() const {
  use();
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

std::string CudaDevice::model() const { return properties_of(index_).name; }
std::string CudaDevice::name() const { return fmt::format("cuda:{}", index_); }

std::string CudaDevice::bus_address() const {
  char address[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(address, sizeof(address), index_), "cudaDeviceGetPCIBusId");
  return address;
}

void* CudaDevice::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it would be reported once more by the next launch
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw_user_error("out of memory on {}: {:.1f} MiB more are needed, {:.1f} MiB of {:.1f} GiB are free", name(),
                     static_cast<double>(bytes) / (1u << 20), static_cast<double>(free) / (1u << 20), gib(total));
  }
  check_cuda(error, "cudaMalloc");
  ++memory_->allocations;
  const size_t now = memory_->current += bytes;
  size_t peak = memory_->peak.load();
  while (now > peak && !memory_->peak.compare_exchange_weak(peak, now)) {
  }
  try {
    zero(memory, bytes);
  } catch (...) {
    free(memory, bytes);
    throw;
  }
  return memory;
}

void* CudaDevice::allocate_briefly(size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory != nullptr) --memory_->allocations;
  return memory;
}

// cudaFree waits for all work on the GPU, so nothing queued can still use the memory.
void CudaDevice::free(void* memory, size_t bytes) noexcept {
  if (memory == nullptr) return;
  cudaFree(memory);
  memory_->current -= bytes;
}

void CudaDevice::copy_in(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  synchronize();  // `from` may be pinned memory, which is read later
}

void CudaDevice::copy_out(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  synchronize();
}

void CudaDevice::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
}

void CudaDevice::zero(void* memory, size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync");
}

void CudaDevice::synchronize() { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

}  // namespace dgc
