// How batches reach the GPU and results leave it while it computes.
#include <cuda_runtime.h>

#include <array>
#include <cstring>

#include "tensor/device_cuda.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Host memory that the GPU reads and writes by itself.
class Pinned {
 public:
  explicit Pinned(size_t bytes) {
    if (bytes == 0) return;
    const cudaError_t error = cudaMallocHost(&memory_, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it would be reported once more by the next launch
      throw_user_error("out of memory: {:.1f} MiB more of the host's are needed for copies to and from the GPU",
                       static_cast<double>(bytes) / (1u << 20));
    }
    check_cuda(error, "cudaMallocHost");
  }
  ~Pinned() { cudaFreeHost(memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

class Event {
 public:
  Event() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // One that was never recorded counts as reached.
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void hold_back(cudaStream_t stream) { check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
  void wait() { check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  bool reached() {
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) return false;
    check_cuda(error, "cudaEventQuery");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Memory on the GPU that batches arrive in.
class Landing {
 public:
  Landing(CudaDevice& device, size_t bytes) : device_(device), bytes_(bytes), memory_(device.allocate(bytes)) {
    device_.count(MemoryUse::batches, static_cast<int64_t>(bytes_));
  }
  ~Landing() {
    device_.count(MemoryUse::batches, -static_cast<int64_t>(bytes_));
    device_.free(memory_, bytes_);
  }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
  void* data() const { return memory_; }

 private:
  CudaDevice& device_;
  size_t bytes_;
  void* memory_;
};

// Two pinned buffers in turn, so that stage() rarely waits, and one on the GPU, which the copy stream may overwrite as
// soon as the work queued before release() is done with it.
class CudaUpload final : public Upload {
 public:
  CudaUpload(CudaDevice& device, size_t bytes)
      : device_(device), bytes_(bytes), slots_{Slot(bytes), Slot(bytes)}, memory_(device, bytes) {
    released_.record(device.stream());  // behind the zeroing of the memory
  }
  ~CudaUpload() override { cudaStreamSynchronize(device_.copy_stream()); }  // copies still read from the slots
  CudaUpload(const CudaUpload&) = delete;
  CudaUpload& operator=(const CudaUpload&) = delete;

  void stage(const void* host, size_t bytes) override {
    DGC_CHECK(bytes <= bytes_, "a piece is larger than the upload was made for");
    if (bytes == 0) return;
    Slot& slot = slots_[next_];
    next_ = 1 - next_;
    slot.sent.wait();
    std::memcpy(slot.memory.data(), host, bytes);
    released_.hold_back(device_.copy_stream());
    check_cuda(
        cudaMemcpyAsync(memory_.data(), slot.memory.data(), bytes, cudaMemcpyHostToDevice, device_.copy_stream()),
        "cudaMemcpyAsync");
    slot.sent.record(device_.copy_stream());
    arrived_.record(device_.copy_stream());
  }
  const void* arrive() override {
    arrived_.hold_back(device_.stream());
    return memory_.data();
  }
  void release() override { released_.record(device_.stream()); }

 private:
  struct Slot {
    explicit Slot(size_t bytes) : memory(bytes) {}
    Pinned memory;
    Event sent;
  };
  CudaDevice& device_;
  size_t bytes_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
  Landing memory_;
  Event arrived_, released_;
};

class CudaDownload final : public Download {
 public:
  CudaDownload(const CudaDevice& device, size_t bytes) : device_(device), bytes_(bytes), memory_(bytes) {}
  ~CudaDownload() override { cudaStreamSynchronize(device_.stream()); }  // the copy still writes to memory_
  CudaDownload(const CudaDownload&) = delete;
  CudaDownload& operator=(const CudaDownload&) = delete;

  void start(const void* memory) override {
    if (bytes_ == 0) return;
    check_cuda(cudaMemcpyAsync(memory_.data(), memory, bytes_, cudaMemcpyDeviceToHost, device_.stream()),
               "cudaMemcpyAsync");
    arrived_.record(device_.stream());
  }
  bool ready() override { return arrived_.reached(); }
  const void* wait() override {
    arrived_.wait();
    return memory_.data();
  }

 private:
  const CudaDevice& device_;
  size_t bytes_;
  Pinned memory_;
  Event arrived_;
};

class PinnedMemory final : public HostMemory {
 public:
  explicit PinnedMemory(size_t bytes) : memory_(bytes) {}
  std::byte* data() override { return static_cast<std::byte*>(memory_.data()); }

 private:
  Pinned memory_;
};

}  // namespace

std::unique_ptr<Upload> CudaDevice::make_upload(size_t bytes) { return std::make_unique<CudaUpload>(*this, bytes); }

std::unique_ptr<Download> CudaDevice::make_download(size_t bytes) {
  return std::make_unique<CudaDownload>(*this, bytes);
}

std::unique_ptr<HostMemory> CudaDevice::make_host_memory(size_t bytes) { return std::make_unique<PinnedMemory>(bytes); }

}  // namespace dgc
