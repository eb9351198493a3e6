// The inner loop runs over channels, 16 at a time, in a vector type that GCC and Clang translate to the instructions of
// the machine. So sums stay in registers, and their order is the same on every machine. The last channels % 16 are
// taken one by one.
#include "kernels/cpu/batch_norm_loops.h"

#include <cmath>
#include <cstring>

#include "tensor/simd.h"

namespace dgc::bn {
namespace {

constexpr int64_t kChannelLanes = 16;
using Lanes = float __attribute__((vector_size(kChannelLanes * sizeof(float))));
static_assert(sizeof(Lanes) == 64);

}  // namespace

// Macros, not functions: a vector passed by value would have a different calling convention in each copy (simd.h).
#define DGC_LOAD(into, from) \
  Lanes into;                \
  std::memcpy(&(into), (from), sizeof(into))
#define DGC_STORE(from, to) std::memcpy((to), &(from), sizeof(from))

DGC_MULTIVERSION
void moments(const float* x, int64_t rows, int64_t channels, float* sum, float* squares) {
  const float per_row = 1.f / static_cast<float>(rows);
  int64_t c = 0;
  for (; c + kChannelLanes <= channels; c += kChannelLanes) {
    // Four sums: an addition takes four cycles, and rows must not wait for each other.
    Lanes s0{}, s1{}, s2{}, s3{};
    const float* at = x + c;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, at += 4 * channels) {
      DGC_LOAD(x0, at);
      DGC_LOAD(x1, at + channels);
      DGC_LOAD(x2, at + 2 * channels);
      DGC_LOAD(x3, at + 3 * channels);
      s0 += x0;
      s1 += x1;
      s2 += x2;
      s3 += x3;
    }
    for (; r < rows; ++r, at += channels) {
      DGC_LOAD(x0, at);
      s0 += x0;
    }
    const Lanes total = (s0 + s1) + (s2 + s3);
    const Lanes mean = total * per_row;
    Lanes q0{}, q1{}, q2{}, q3{};
    at = x + c;
    for (r = 0; r + 4 <= rows; r += 4, at += 4 * channels) {
      DGC_LOAD(x0, at);
      DGC_LOAD(x1, at + channels);
      DGC_LOAD(x2, at + 2 * channels);
      DGC_LOAD(x3, at + 3 * channels);
      q0 += (x0 - mean) * (x0 - mean);
      q1 += (x1 - mean) * (x1 - mean);
      q2 += (x2 - mean) * (x2 - mean);
      q3 += (x3 - mean) * (x3 - mean);
    }
    for (; r < rows; ++r, at += channels) {
      DGC_LOAD(x0, at);
      q0 += (x0 - mean) * (x0 - mean);
    }
    const Lanes centred = (q0 + q1) + (q2 + q3);
    DGC_STORE(total, sum + c);
    DGC_STORE(centred, squares + c);
  }
  for (; c < channels; ++c) {
    float s = 0, q = 0;
    for (int64_t r = 0; r < rows; ++r) s += x[r * channels + c];
    const float mean = s * per_row;
    for (int64_t r = 0; r < rows; ++r) q += (x[r * channels + c] - mean) * (x[r * channels + c] - mean);
    sum[c] = s;
    squares[c] = q;
  }
}

DGC_MULTIVERSION
void normalise(const Affine& k, const float* x, const float* residual, int64_t rows, int64_t channels, float* y) {
  const float floor = k.relu ? 0.f : -INFINITY;
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    int64_t c = 0;
    for (; c + kChannelLanes <= channels; c += kChannelLanes) {
      DGC_LOAD(in, x + c);
      DGC_LOAD(mean, k.mean + c);
      DGC_LOAD(gain, k.gain + c);
      DGC_LOAD(shift, k.shift + c);
      Lanes out = (in - mean) * gain + shift;
      if (residual != nullptr) {
        DGC_LOAD(add, residual + c);
        out += add;
      }
      out = out < floor ? Lanes{} : out;  // written so that NaN passes through
      DGC_STORE(out, y + c);
    }
    for (; c < channels; ++c) {
      float out = (x[c] - k.mean[c]) * k.gain[c] + k.shift[c];
      if (residual != nullptr) out += residual[c];
      y[c] = out < floor ? 0.f : out;
    }
    if (residual != nullptr) residual += channels;
  }
}

DGC_MULTIVERSION
void gradient_sums(const Relu& relu, const float* x, const float* y, const float* mean, int64_t rows, int64_t channels,
                   float* dy, float* sum, float* dot) {
  const bool by_output = relu.mask == ReluMask::output, by_input = relu.mask == ReluMask::input;
  int64_t c = 0;
  for (; c + kChannelLanes <= channels; c += kChannelLanes) {
    Lanes s0{}, s1{}, d0{}, d1{}, gain{}, shift{};
    DGC_LOAD(m, mean + c);
    if (by_input) {
      std::memcpy(&gain, relu.gain + c, sizeof(gain));
      std::memcpy(&shift, relu.shift + c, sizeof(shift));
    }
    const auto row = [&](int64_t r, Lanes & s, Lanes & d) __attribute__((always_inline)) {
      const int64_t at = r * channels + c;
      DGC_LOAD(g, dy + at);
      DGC_LOAD(in, x + at);
      in -= m;
      if (by_output) {
        DGC_LOAD(out, y + at);
        g = out > 0.f ? g : Lanes{};
        DGC_STORE(g, dy + at);
      }
      if (by_input) g = in * gain + shift > 0.f ? g : Lanes{};
      s += g;
      d += g * in;
    };
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
      row(r, s0, d0);
      row(r + 1, s1, d1);
    }
    if (r < rows) row(r, s0, d0);
    s0 += s1;
    d0 += d1;
    DGC_STORE(s0, sum + c);
    DGC_STORE(d0, dot + c);
  }
  for (; c < channels; ++c) {
    float s = 0, d = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * channels + c;
      const float in = x[at] - mean[c];
      if (by_output && !(y[at] > 0)) dy[at] = 0;
      const float g = by_input && !(in * relu.gain[c] + relu.shift[c] > 0) ? 0.f : dy[at];
      s += g;
      d += g * in;
    }
    sum[c] = s;
    dot[c] = d;
  }
}

void finish_channel(const ChannelGradients& k, int64_t c, const ChannelSums& over) {
  const double inverse = k.inverse[c], gain = k.scale[c] * inverse;
  k.dscale[c] += static_cast<float>(over.dot * inverse);
  k.dshift[c] += static_cast<float>(over.sum);
  k.a[c] = static_cast<float>(gain);
  k.b[c] = static_cast<float>(-gain * inverse * inverse * over.dot / over.rows);
  k.d[c] = static_cast<float>(-gain * over.sum / over.rows);
}

DGC_MULTIVERSION
void input_gradient(const Gradient& k, const float* x, const float* dy, int64_t rows, int64_t channels, float* dx) {
  const bool by_input = k.relu.mask == ReluMask::input;
  for (int64_t r = 0; r < rows; ++r, x += channels, dy += channels, dx += channels) {
    int64_t c = 0;
    for (; c + kChannelLanes <= channels; c += kChannelLanes) {
      DGC_LOAD(in, x + c);
      DGC_LOAD(g, dy + c);
      DGC_LOAD(mean, k.mean + c);
      DGC_LOAD(a, k.a + c);
      DGC_LOAD(b, k.b + c);
      DGC_LOAD(d, k.d + c);
      in -= mean;
      if (by_input) {
        DGC_LOAD(gain, k.relu.gain + c);
        DGC_LOAD(shift, k.relu.shift + c);
        g = in * gain + shift > 0.f ? g : Lanes{};
      }
      const Lanes out = (a * g + b * in) + d;
      DGC_STORE(out, dx + c);
    }
    for (; c < channels; ++c) {
      const float in = x[c] - k.mean[c];
      const float g = by_input && !(in * k.relu.gain[c] + k.relu.shift[c] > 0) ? 0.f : dy[c];
      dx[c] = (k.a[c] * g + k.b[c] * in) + k.d[c];
    }
  }
}

#undef DGC_LOAD
#undef DGC_STORE

}  // namespace dgc::bn
