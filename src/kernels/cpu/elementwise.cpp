#include "kernels/cpu/elementwise.h"

#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "tensor/rng.h"
#include "tensor/simd.h"

namespace dgc {

DGC_MULTIVERSION void add_chunk(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

namespace {

DGC_MULTIVERSION void subtract_chunk(const float* a, const float* b, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}

DGC_MULTIVERSION void relu_chunk(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];  // so that NaN stays NaN
}

DGC_MULTIVERSION void clipped_relu_chunk(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i] > kReluClip ? kReluClip : x[i];
}

DGC_MULTIVERSION void clipped_relu_gradient(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 && y[i] < kReluClip ? dy[i] : 0;
}

DGC_MULTIVERSION void relu_gradient(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

DGC_MULTIVERSION void tanh_gradient(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

DGC_MULTIVERSION void sigmoid_gradient(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (y[i] * (1 - y[i]));
}

void tanh_chunk(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

void sigmoid_chunk(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1 / (1 + std::exp(-x[i]));
}

struct Functions {
  void (*forward)(const float* x, int64_t n, float* y);
  void (*gradient)(const float* y, const float* dy, int64_t n, float* dx);
};

Functions functions_of(Activation kind) {
  switch (kind) {
    case Activation::relu:
      return {relu_chunk, relu_gradient};
    case Activation::tanh:
      return {tanh_chunk, tanh_gradient};
    case Activation::sigmoid:
      return {sigmoid_chunk, sigmoid_gradient};
    case Activation::clipped_relu:
      return {clipped_relu_chunk, clipped_relu_gradient};
  }
  throw InternalError("an activation without functions");
}

// Serves elements first ... first + n - 1 of the random stream. One Philox block serves four elements.
void dropout_chunk(const Philox& random, float p, uint64_t first, const float* x, int64_t n, float* y) {
  const float gain = 1 / (1 - p);
  const auto threshold = static_cast<uint32_t>(std::ceil(static_cast<double>(p) * 0x1p24));  // uniform() has 24 bits
  std::array<uint32_t, 4> block{};
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    if (i == 0 || index % 4 == 0) block = random.block(index / 4);
    y[i] = (block[index % 4] >> 8) >= threshold ? x[i] * gain : 0;
  }
}

}  // namespace

void CpuBackend::add(ConstView x, View y) {
  const float* const from = x.f32();
  float* const to = y.f32();
  for_chunks(y.numel(), kElementwiseChunk, [=](int64_t at, int64_t n) { add_chunk(from + at, n, to + at); });
}

void CpuBackend::subtract(ConstView a, ConstView b, View y) {
  const float *const from = a.f32(), *const less = b.f32();
  float* const to = y.f32();
  for_chunks(y.numel(), kElementwiseChunk,
             [=](int64_t at, int64_t n) { subtract_chunk(from + at, less + at, n, to + at); });
}

void CpuBackend::convert(ConstView x, View y) { device_->copy(y.f32(), x.f32(), y.bytes()); }

void CpuBackend::activation_forward(Activation kind, ConstView x, View y) {
  const auto run = functions_of(kind).forward;
  const float* const from = x.f32();
  float* const to = y.f32();
  for_chunks(y.numel(), kElementwiseChunk, [=](int64_t at, int64_t n) { run(from + at, n, to + at); });
}

void CpuBackend::activation_backward(Activation kind, ConstView y, ConstView dy, View dx) {
  const auto run = functions_of(kind).gradient;
  const float *const out = y.f32(), *const from = dy.f32();
  float* const to = dx.f32();
  for_chunks(dx.numel(), kElementwiseChunk, [=](int64_t at, int64_t n) { run(out + at, from + at, n, to + at); });
}

void CpuBackend::dropout_forward(const DropoutArgs& args, ConstView x, View y) {
  const Philox random(args.seed, args.stream);
  const uint64_t step = args.control == nullptr ? 0 : args.control->step;
  const uint64_t first = step * args.per_step + args.first;
  const float* const from = x.f32();
  float* const to = y.f32();
  for_chunks(args.numel, kElementwiseChunk, [&](int64_t at, int64_t n) {
    dropout_chunk(random, args.p, first + static_cast<uint64_t>(at), from + at, n, to + at);
  });
}

}  // namespace dgc
