#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

namespace dgc {
namespace {

// The order of roundings is part of the contract: the product with the gradient scale is rounded on its own, so that
// what enters the momentum is the gradient itself; every other product is fused into the sum that it feeds.
DGC_MULTIVERSION void step_chunk(const SgdArgs& args, const float* g, int64_t n, float* m, float* w) {
  const float lr = args.lr, momentum = args.momentum, decay = args.weight_decay, scale = args.gradient_scale;
  const auto velocity = [=](float gradient, float old, float weight, float& d) __attribute__((always_inline)) {
    d = std::fma(decay, weight, scale * gradient);
    return std::fma(momentum, old, d);
  };
  float d = 0;
  if (args.nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      m[i] = velocity(g[i], m[i], w[i], d);
      w[i] = std::fma(-lr, std::fma(momentum, m[i], d), w[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      m[i] = velocity(g[i], m[i], w[i], d);
      w[i] = std::fma(-lr, m[i], w[i]);
    }
  }
}

constexpr int64_t kSumChunk = 4096;

// Eight sums side by side, spelled out, so that the order is the same on every machine.
DGC_MULTIVERSION double squares_of_chunk(const float* x, int64_t n) {
  using Floats = float __attribute__((vector_size(32)));
  using Doubles = double __attribute__((vector_size(64)));
  Doubles a{}, b{};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Floats low, high;
    std::memcpy(&low, x + i, sizeof low);
    std::memcpy(&high, x + i + 8, sizeof high);
    const Doubles l = __builtin_convertvector(low, Doubles), h = __builtin_convertvector(high, Doubles);
    a += l * l;
    b += h * h;
  }
  a += b;
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  for (int lane = 0; lane < 8; ++lane) sum += a[lane];
  return sum;
}

}  // namespace

void CpuBackend::sgd_step(const SgdArgs& args, ConstView g, View m, View w) {
  const float* const gradient = g.f32();
  float *const momentum = m.f32(), *const weights = w.f32();
  for_chunks(args.numel, kElementwiseChunk,
             [&](int64_t at, int64_t n) { step_chunk(args, gradient + at, n, momentum + at, weights + at); });
}

double CpuBackend::sum_squares(ConstView x) {
  const float* const from = x.f32();
  const int64_t n = x.numel(), chunks = (n + kSumChunk - 1) / kSumChunk;
  auto* const sums = reinterpret_cast<double*>(scratch(static_cast<size_t>(chunks) * sizeof(double)));
  for_chunks(n, kSumChunk, [=](int64_t at, int64_t size) { sums[at / kSumChunk] = squares_of_chunk(from + at, size); });
  double total = 0;
  for (int64_t i = 0; i < chunks; ++i) total += sums[i];
  return total;
}

}  // namespace dgc
