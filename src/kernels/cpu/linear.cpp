// Matrix products by oneDNN's sgemm, which reads PyTorch's layout as it is and adds to the weight gradient by itself.
// It takes memory for its packed panels in each call, of a size that the caches set; the inner product primitive would
// not, but would copy all weights into its own layout and back every step.
#include <algorithm>
#include <dnnl.hpp>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

namespace dgc {
namespace {

constexpr int64_t kColumns = 64;

// db[c] += sum of dy over rows, for up to kColumns columns.
DGC_MULTIVERSION void add_column_sums(const float* dy, int64_t rows, int64_t stride, int64_t columns, float* db) {
  double sums[kColumns] = {};
  for (int64_t r = 0; r < rows; ++r, dy += stride) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += dy[c];
  }
  for (int64_t c = 0; c < columns; ++c) db[c] += static_cast<float>(sums[c]);
}

// One matrix as it lies in memory, row by row, and whether its transpose is meant.
struct Factor {
  const float* data;
  int64_t row_length;
  char transposed = 'N';
};

// c [m, n] = a [m, k] * b [k, n] + keep * c
void multiply(int64_t m, int64_t n, int64_t k, const Factor& a, const Factor& b, float keep, float* c) {
  dnnl::error::wrap_c_api(
      dnnl_sgemm(a.transposed, b.transposed, m, n, k, 1.f, a.data, a.row_length, b.data, b.row_length, keep, c, n),
      "oneDNN could not multiply two matrices");
}

}  // namespace

void CpuBackend::linear_forward(const LinearArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  float* const out = y.f32();
  if (b) {
    for (int64_t r = 0; r < args.batch; ++r) std::copy_n(b.f32(), args.out, out + r * args.out);
  }
  multiply(args.batch, args.out, args.in, {x.f32(), args.in}, {w.f32(), args.in, 'T'}, b ? 1.f : 0.f, out);
}

void CpuBackend::linear_backward(const LinearArgs& args, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                                 View db) {
  const float* const g = dy.f32();
  if (dx) multiply(args.batch, args.in, args.out, {g, args.out}, {w.f32(), args.in}, 0.f, dx.f32());
  if (dw) multiply(args.out, args.in, args.batch, {g, args.out, 'T'}, {x.f32(), args.in}, 1.f, dw.f32());
  if (db) {
    float* const to = db.f32();
    for_chunks(args.out, kColumns,
               [&](int64_t c, int64_t columns) { add_column_sums(g + c, args.batch, args.out, columns, to + c); });
  }
}

}  // namespace dgc
