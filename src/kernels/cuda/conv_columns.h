#pragma once

#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/im2col.h"
#include "kernels/cuda/product.h"

namespace dgc::cuda {

// A convolution in one pass as matrix products, one for each group of channels, with the windows over an image as the
// rows of a matrix (im2col). That works for every convolution, and gives the same bits every time: the matrix is made
// some windows at a time, in their order, so that it takes at most kMostColumns bytes (or one window).
//
// The gradient of the data is such a convolution too: over dy with its pixels spread out by the stride, and with the
// filter turned around. Strides above 1 cost products with zeros there.
class ColumnConv {
 public:
  static constexpr size_t kMostColumns = size_t{64} << 20;

  explicit ColumnConv(const PlannedConv&, size_t most_columns = kMostColumns);

  // Memory for the matrix, aligned to 256 bytes, that multiply() and multiply_transposed() ask for.
  size_t columns_bytes() const;

  // Passes forward and backward_data. `image` is x, or dy; `out` is y, or dx; `filter` is w in the images' type, from
  // load_filters(), or from load_turned_filter().
  void multiply(CudaBackend&, const Product&, ConstView image, const void* filter, View out, void* columns) const;
  // Pass backward_weights: dfilter, fp32 and in the order of load_filters(), = the sum over all windows.
  void multiply_transposed(CudaBackend&, const Product&, ConstView x, ConstView dy, float* dfilter,
                           void* columns) const;

 private:
  // Calls body(first window, number of windows) for all windows, after im2col() of these.
  template <typename Body>
  void each_stretch(CudaBackend&, ConstView image, void* columns, const Body& body) const;

  Windows windows_;
  int64_t all_windows_;   // of all images
  int64_t at_once_;       // windows
  int64_t out_channels_;  // of one group
  DType type_;
};

}  // namespace dgc::cuda
