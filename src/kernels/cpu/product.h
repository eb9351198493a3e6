#pragma once

#include <cstdint>

namespace dgc {

// A matrix as it lies in memory, row by row, and whether products take its transpose.
struct Factor {
  const float* data;
  int64_t row_length;
  char transposed = 'N';
};

// c [m, n] = a [m, k] * b [k, n], added to c if `add`, by oneDNN's sgemm. It reads PyTorch's layout as it is and adds
// to a weight gradient by itself, but takes memory for its packed panels in each call, of a size that the caches set.
void multiply_exactly(int64_t m, int64_t n, int64_t k, const Factor& a, const Factor& b, bool add, float* c);

// to[c] += the sum of x[r][c] over rows, for the first `columns` columns of x. Sums are in double.
void add_column_sums(const Factor& x, int64_t rows, int64_t columns, float* to);

}  // namespace dgc
