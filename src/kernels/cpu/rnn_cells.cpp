#include "kernels/cpu/rnn_cells.h"

#include "kernels/cpu/vector_math.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

// Two arrays of these loops are either the same one or do not overlap, which is what ivdep tells the compiler.
DGC_MULTIVERSION void lstm_forward(const RnnForwardRow& r) {
  const int64_t n = r.hidden;
  const float *const bias_i = r.bias, *const bias_f = r.bias + n, *const bias_g = r.bias + 2 * n,
                     *const bias_o = r.bias + 3 * n, *const c_before = r.c_before;
  float *const i = r.gates, *const f = r.gates + n, *const g = r.gates + 2 * n, *const o = r.gates + 3 * n;
  float *const c = r.c, *const tanh_c = r.extra, *const h = r.h;
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

DGC_MULTIVERSION void lstm_backward(const RnnBackwardRow& r) {
  const int64_t n = r.hidden;
  float *const i = r.gates, *const f = r.gates + n, *const g = r.gates + 2 * n, *const o = r.gates + 3 * n;
  const float *const c_before = r.c_before, *const tanh_c = r.extra, *const dy = r.dy, *const dh = r.dh;
  float* const dc = r.dc;
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

DGC_MULTIVERSION void gru_forward(const RnnForwardRow& row) {
  const int64_t m = row.hidden;
  const float *const bias_r = row.bias, *const bias_z = row.bias + m, *const bias_n = row.bias + 2 * m;
  const float *const by_r = row.recurrent, *const by_z = row.recurrent + m, *const by_n = row.recurrent + 2 * m;
  const float* const h_before = row.h_before;
  float *const r = row.gates, *const z = row.gates + m, *const n = row.gates + 2 * m;
  float *const kept = row.extra, *const h = row.h;
#pragma GCC ivdep
  for (int64_t j = 0; j < m; ++j) {
    r[j] = vector_sigmoid((r[j] + by_r[j]) + bias_r[j]);
    z[j] = vector_sigmoid((z[j] + by_z[j]) + bias_z[j]);
    kept[j] = by_n[j];
    n[j] = vector_tanh((n[j] + bias_n[j]) + r[j] * by_n[j]);
    h[j] = n[j] + z[j] * (h_before[j] - n[j]);
  }
}

DGC_MULTIVERSION void gru_backward(const RnnBackwardRow& row) {
  const int64_t m = row.hidden;
  float *const r = row.gates, *const z = row.gates + m, *const n = row.gates + 2 * m;
  float *const by_n = row.extra, *const dh = row.dh;
  const float *const h_before = row.h_before, *const dy = row.dy;
#pragma GCC ivdep
  for (int64_t j = 0; j < m; ++j) {
    const float from_h = dy[j] + dh[j];
    const float dz = from_h * (h_before[j] - n[j]) * (z[j] * (1.f - z[j]));
    const float dn = from_h * (1.f - z[j]) * (1.f - n[j] * n[j]);
    const float dr = dn * by_n[j] * (r[j] * (1.f - r[j]));
    dh[j] = from_h * z[j];
    by_n[j] = dn * r[j];
    r[j] = dr;
    z[j] = dz;
    n[j] = dn;
  }
}

DGC_MULTIVERSION void tanh_forward(const RnnForwardRow& r) {
  const float* const bias = r.bias;
  float *const a = r.gates, *const h = r.h;
#pragma GCC ivdep
  for (int64_t j = 0; j < r.hidden; ++j) h[j] = a[j] = vector_tanh(a[j] + bias[j]);
}

DGC_MULTIVERSION void tanh_backward(const RnnBackwardRow& r) {
  const float *const dy = r.dy, *const dh = r.dh;
  float* const a = r.gates;
#pragma GCC ivdep
  for (int64_t j = 0; j < r.hidden; ++j) a[j] = (dy[j] + dh[j]) * (1.f - a[j] * a[j]);
}

DGC_MULTIVERSION void relu_forward(const RnnForwardRow& r) {
  const float* const bias = r.bias;
  float *const a = r.gates, *const h = r.h;
#pragma GCC ivdep
  for (int64_t j = 0; j < r.hidden; ++j) {
    const float sum = a[j] + bias[j];
    h[j] = a[j] = sum < 0.f ? 0.f : sum;  // so that NaN stays NaN
  }
}

DGC_MULTIVERSION void relu_backward(const RnnBackwardRow& r) {
  const float *const dy = r.dy, *const dh = r.dh;
  float* const a = r.gates;
#pragma GCC ivdep
  for (int64_t j = 0; j < r.hidden; ++j) a[j] = a[j] > 0.f ? dy[j] + dh[j] : 0.f;
}

}  // namespace

void rnn_forward_row(RnnCell cell, const RnnForwardRow& row) {
  switch (cell) {
    case RnnCell::lstm:
      return lstm_forward(row);
    case RnnCell::gru:
      return gru_forward(row);
    case RnnCell::tanh:
      return tanh_forward(row);
    case RnnCell::relu:
      return relu_forward(row);
  }
}

void rnn_backward_row(RnnCell cell, const RnnBackwardRow& row) {
  switch (cell) {
    case RnnCell::lstm:
      return lstm_backward(row);
    case RnnCell::gru:
      return gru_backward(row);
    case RnnCell::tanh:
      return tanh_backward(row);
    case RnnCell::relu:
      return relu_backward(row);
  }
}

}  // namespace dgc
