#pragma once

#include <cstdint>

// The loops of batch normalisation over one chunk of rows of [rows, channels] data, and what lies between them.
namespace dgc::bn {

// sum[c] = sum of x; squares[c] = sum of (x - sum[c] / rows)^2: centred, so a mean far from zero costs no digits.
void moments(const float* x, int64_t rows, int64_t channels, float* sum, float* squares);

struct Affine {
  const float* mean;
  const float* gain;  // scale / sqrt(var + eps)
  const float* shift;
  bool relu;
};
// y = relu?((x - mean) * gain + shift + residual?); residual may be null.
void normalise(const Affine&, const float* x, const float* residual, int64_t rows, int64_t channels, float* y);

// What tells where the ReLU set y to 0: nothing, as there was no ReLU; y; or x, from which the sign of y is computed
// again, with the operations and the rounding of normalise().
enum class ReluMask { none, output, input };
struct Relu {
  ReluMask mask = ReluMask::none;
  const float* gain = nullptr;  // Affine's, for ReluMask::input
  const float* shift = nullptr;
};

// Takes dy as 0 where the ReLU set y to 0, then sum[c] = sum of dy, dot[c] = sum of dy * (x - mean). y: for
// ReluMask::output, where those zeros are written to dy too.
void gradient_sums(const Relu&, const float* x, const float* y, const float* mean, int64_t rows, int64_t channels,
                   float* dy, float* sum, float* dot);

// sums [chunks, channels] -> the sum of channel c, in double and in order.
inline double over_chunks(const float* sums, int64_t chunks, int64_t channels, int64_t c) {
  double total = 0;
  for (int64_t i = 0; i < chunks; ++i) total += sums[i * channels + c];
  return total;
}

// What a channel's sums over all rows make of it. With h = (x - mean) * inverse, n rows:
// dx = scale * inverse * (dy - mean(dy) - h * mean(dy * h)), Ioffe & Szegedy 2015.
struct ChannelSums {
  double rows, sum, dot;  // of gradient_sums
};
struct ChannelGradients {
  const float* scale;
  const float* inverse;    // 1 / sqrt(var + eps)
  float *dscale, *dshift;  // ADDED to
  float *a, *b, *d;        // Gradient's
};
void finish_channel(const ChannelGradients&, int64_t c, const ChannelSums&);

// dx = a[c] * dy + b[c] * (x - mean[c]) + d[c]; dx may be dy. With ReluMask::input dy is taken as gradient_sums() does,
// with ReluMask::output it has its zeros already.
struct Gradient {
  const float* mean;
  const float* a;
  const float* b;
  const float* d;
  Relu relu{};
};
void input_gradient(const Gradient&, const float* x, const float* dy, int64_t rows, int64_t channels, float* dx);

}  // namespace dgc::bn
