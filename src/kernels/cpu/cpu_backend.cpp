#include "kernels/cpu/cpu_backend.h"

#include <fmt/core.h>
#include <omp.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "kernels/cpu/dgc_scratch.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/thread_lane.h"
#include "tensor/cores.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// OpenMP ends the process where the system refuses it a thread. So as many threads are tried first, all of them at
// once, of which the refusal is an exception (std::system_error); then OpenMP starts its own, which it keeps. Other
// ranks of this process wait meanwhile, as they would take the room.
void start_threads(int count) {
  static std::mutex one_by_one;
  const std::lock_guard alone(one_by_one);
  {
    const auto wait = [](const std::stop_token& stop) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait(lock, stop, [] { return false; });
    };
    std::vector<std::jthread> tried;  // end with their owner
    for (int i = 1; i < count; ++i) tried.emplace_back(wait);
  }
  int started = 0;
#pragma omp parallel num_threads(count) reduction(+ : started)
  started += 1;
  if (started == count) return;
  // The loops take each thread's share from the number of threads that they have asked for.
  throw_user_error(
      "OpenMP starts {} of {} threads: unset OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS, or set threads to {}", started,
      count, started);
}

// An instruction set of oneDNN's is a set of bits.
bool onednn_uses(dnnl::cpu_isa instructions) {
  const auto needed = static_cast<unsigned>(instructions);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

// For products of bf16 oneDNN has more kinds of code than for those of fp32.
std::string instructions(Fp32Math math) {
  if (math == Fp32Math::bf16) return onednn_uses(dnnl::cpu_isa::avx512_core_amx) ? "AMX" : "AVX-512 BF16";
  if (onednn_uses(dnnl::cpu_isa::avx512_core)) return "AVX-512";
  return onednn_uses(dnnl::cpu_isa::avx2) ? "AVX2" : "neither AVX-512 nor AVX2";
}

}  // namespace

CpuBackend::CpuBackend(int threads, Fp32Math math, std::shared_ptr<Device> device)
    : threads_(threads > 0 ? threads : usable_cores()),
      math_(math),
      device_(std::move(device)),
      dnnl_(std::make_unique<DnnlCache>(math)),
      dgc_scratch_(std::make_unique<DgcScratch>()) {
  // oneDNN asks OpenMP for its number of threads as well, so it is set for the thread and not per region.
  omp_set_num_threads(threads_);
  omp_set_dynamic(0);  // with OMP_DYNAMIC it would start fewer while the machine is busy
  start_threads(threads_);
}

CpuBackend::~CpuBackend() = default;

std::string CpuBackend::arithmetic() const {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}", version.major, version.minor, version.patch, instructions(math_));
}

std::unique_ptr<Lane> CpuBackend::make_lane() {
  return std::make_unique<ThreadLane>([this] { return std::make_unique<CpuBackend>(threads_, math_, device_); });
}

std::byte* CpuBackend::scratch(size_t bytes) { return at_least(bytes, scratch_, device_, MemoryUse::scratch); }

float* CpuBackend::scratch_floats(int64_t count) { return reinterpret_cast<float*>(scratch(float_bytes(count))); }

void CpuBackend::product(int64_t m, int64_t n, int64_t k, const Factor& a, const Factor& b, bool add, float* c) {
  if (math_ != Fp32Math::bf16) return multiply_exactly(m, n, k, a, b, add, c);
  const RoundedProduct& rounded = dnnl_->rounded_product({m, n, k, FactorShape(a), FactorShape(b), add});
  dnnl_->multiply_rounded(rounded, a.data, b.data, c,
                          at_least(rounded.room_bytes(), rounded_, device_, MemoryUse::scratch));
}

std::unique_ptr<Backend> make_cpu_backend(int threads, Fp32Math math) {
  return std::make_unique<CpuBackend>(threads, math);
}

bool cpu_multiplies_bf16() { return onednn_uses(dnnl::cpu_isa::avx512_core_bf16); }

}  // namespace dgc
