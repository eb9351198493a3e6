#include "kernels/cpu/lstm_gates.h"

#include "kernels/cpu/simd.h"
#include "kernels/cpu/vector_math.h"

namespace dgc {
namespace {

// All arrays are apart or the same one, element by element: what ivdep tells the compiler.
DGC_MULTIVERSION void forward(int64_t n, const float* bias, const float* c_before, float* gates, float* c,
                              float* tanh_c, float* h) {
  const float *const bias_i = bias, *const bias_f = bias + n, *const bias_g = bias + 2 * n,
                     *const bias_o = bias + 3 * n;
  float *const i = gates, *const f = gates + n, *const g = gates + 2 * n, *const o = gates + 3 * n;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    i[j] = vector_sigmoid(i[j] + bias_i[j]);
    f[j] = vector_sigmoid(f[j] + bias_f[j]);
    g[j] = vector_tanh(g[j] + bias_g[j]);
    o[j] = vector_sigmoid(o[j] + bias_o[j]);
    c[j] = f[j] * c_before[j] + i[j] * g[j];
    tanh_c[j] = vector_tanh(c[j]);
    h[j] = o[j] * tanh_c[j];
  }
}

DGC_MULTIVERSION void backward(int64_t n, const float* c_before, const float* tanh_c, const float* dy, const float* dh,
                               float* dc, float* gates) {
  float *const i = gates, *const f = gates + n, *const g = gates + 2 * n, *const o = gates + 3 * n;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const float from_h = dy[j] + dh[j];
    const float from_c = dc[j] + from_h * o[j] * (1.f - tanh_c[j] * tanh_c[j]);
    const float di = from_c * g[j] * (i[j] * (1.f - i[j]));
    const float df = from_c * c_before[j] * (f[j] * (1.f - f[j]));
    const float dg = from_c * i[j] * (1.f - g[j] * g[j]);
    const float d_o = from_h * tanh_c[j] * (o[j] * (1.f - o[j]));
    dc[j] = from_c * f[j];
    i[j] = di;
    f[j] = df;
    g[j] = dg;
    o[j] = d_o;
  }
}

}  // namespace

void lstm_forward_row(const LstmForwardRow& r) { forward(r.hidden, r.bias, r.c_before, r.gates, r.c, r.tanh_c, r.h); }

void lstm_backward_row(const LstmBackwardRow& r) {
  backward(r.hidden, r.c_before, r.tanh_c, r.dy, r.dh, r.dc, r.gates);
}

}  // namespace dgc
