#include <array>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/parallel.h"
#include "kernels/sum_order.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

// Adds up the lanes, folded in halves, into lanes[0].
void fold(double* lanes, int count) {
  for (int half = count / 2; half >= 1; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
}

DGC_MULTIVERSION double squares_of_chunk(const float* x, int64_t n) {
  static_assert(kSumLanes == 16);
  using Floats = float __attribute__((vector_size(32)));
  using Doubles = double __attribute__((vector_size(64)));
  Doubles a{}, b{};
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    Floats low, high;
    std::memcpy(&low, x + i, sizeof low);
    std::memcpy(&high, x + i + 8, sizeof high);
    const Doubles l = __builtin_convertvector(low, Doubles), h = __builtin_convertvector(high, Doubles);
    a += l * l;
    b += h * h;
  }
  double lanes[kSumLanes];
  std::memcpy(lanes, &a, sizeof a);
  std::memcpy(lanes + 8, &b, sizeof b);
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += static_cast<double>(x[i]) * x[i];
  fold(lanes, kSumLanes);
  return lanes[0];
}

}  // namespace

void CpuBackend::sum_squares(ConstView x, double* out) {
  const float* const from = x.f32();
  const int64_t n = x.numel(), chunks = (n + kSumChunk - 1) / kSumChunk;
  auto* const sums = reinterpret_cast<double*>(scratch(static_cast<size_t>(chunks) * sizeof(double)));
  for_chunks(n, kSumChunk, [=](int64_t at, int64_t size) { sums[at / kSumChunk] = squares_of_chunk(from + at, size); });
  std::array<double, kSumChunkLanes> lanes{};
  for (int64_t c = 0; c < chunks; ++c) lanes[static_cast<size_t>(c % kSumChunkLanes)] += sums[c];
  fold(lanes.data(), kSumChunkLanes);
  *out = lanes[0];
}

void CpuBackend::ordered_sum(std::span<const float* const> x, float* out, int64_t n) {
  // A chunk of the sum stays in the first-level cache while all workers' chunks are added to it.
  for_chunks(n, 4096, [=](int64_t at, int64_t size) {
    std::memcpy(out + at, x[0] + at, float_bytes(size));
    for (const float* worker : x.subspan(1)) add_chunk(worker + at, size, out + at);
  });
}

}  // namespace dgc
