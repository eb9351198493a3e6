#pragma once

#include <cstddef>
#include <memory>

#include "kernels/backend.h"

namespace dgc {

struct DgcScratch;  // dgc_scratch.h
struct DnnlCache;   // dnnl_cache.h
struct Factor;      // product.h

// The backend of the processor: oneDNN for convolutions and matrix products, OpenMP loops for the rest. The bodies lie
// in one file per group of ops. Only the thread that made the backend may use it, because OpenMP's number of threads is
// a property of a thread.
class CpuBackend : public Backend {
 public:
  CpuBackend(int threads, Fp32Math math) : CpuBackend(threads, math, make_cpu_device()) {}
  CpuBackend(int threads, Fp32Math, std::shared_ptr<Device> device);
  ~CpuBackend() override;

  std::string name() const override { return "cpu"; }
  const std::shared_ptr<Device>& device() const override { return device_; }
  bool supports(DType activations) const override { return activations == DType::f32; }
  int threads() const override { return threads_; }
  std::string arithmetic() const override;
  std::unique_ptr<Lane> make_lane() override;
  void begin_range(const char*) override {}
  void end_range() override {}
  void run_recorded(const RecordKey&, const std::function<void()>& body) override { body(); }

#include "kernels/kernel_ops.inc"
#include "kernels/library_ops.inc"

 private:
  std::byte* scratch(size_t bytes);  // aligned to 64 bytes and valid until the next call
  float* scratch_floats(int64_t count);
  // c [m, n] = a [m, k] * b [k, n], added to c if `add`. Leaves the scratch memory alone.
  void product(int64_t m, int64_t n, int64_t k, const Factor& a, const Factor& b, bool add, float* c);

  int threads_;
  Fp32Math math_;
  std::shared_ptr<Device> device_;
  Buffer scratch_, rounded_;
  std::unique_ptr<DnnlCache> dnnl_;
  std::unique_ptr<DgcScratch> dgc_scratch_;
};

}  // namespace dgc
