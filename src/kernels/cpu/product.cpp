#include "kernels/cpu/product.h"

#include <dnnl.hpp>

#include "kernels/cpu/parallel.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

constexpr int64_t kColumns = 64;

// Up to kColumns columns.
DGC_MULTIVERSION void column_sums(const float* x, int64_t rows, int64_t stride, int64_t columns, double* sums) {
  for (int64_t c = 0; c < columns; ++c) sums[c] = 0;
  for (int64_t r = 0; r < rows; ++r, x += stride) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += x[c];
  }
}

}  // namespace

void multiply_exactly(int64_t m, int64_t n, int64_t k, const Factor& a, const Factor& b, bool add, float* c) {
  dnnl::error::wrap_c_api(dnnl_sgemm(a.transposed, b.transposed, m, n, k, 1.f, a.data, a.row_length, b.data,
                                     b.row_length, add ? 1.f : 0.f, c, n),
                          "oneDNN could not multiply two matrices");
}

void add_column_sums(const Factor& x, int64_t rows, int64_t columns, float* to) {
  for_chunks(columns, kColumns, [=](int64_t first, int64_t count) {
    double sums[kColumns];
    column_sums(x.data + first, rows, x.row_length, count, sums);
    for (int64_t c = 0; c < count; ++c) to[first + c] += static_cast<float>(sums[c]);
  });
}

}  // namespace dgc
