#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace dgc {

// The backward passes of a convolution without groups as matrix products, where oneDNN's code is slow, as for the wide
// windows of speech, or cannot be trusted (dnnl_cache.cpp says where). Images lie as NHWC, weights as PyTorch's. The
// results do not depend on the number of threads where there are several pieces of the input. There is one where the
// input has a single row or there are more than 2 Mi weights: then each product takes all threads by itself, and sgemm
// may add up in another order with another number of them.
//
// The products belong to one row of the input each. A window reads a stretch of such a row, so that all windows of some
// images are the rows of one factor; the other one has the gradients of the outputs that these windows lead to.
class ConvProducts {
 public:
  explicit ConvProducts(const Conv2dArgs&);

  int64_t room_floats() const;  // scratch memory of one call

  // dx [batch, in_h, in_w, in_c] = the gradient for the input
  void backward_data(const float* dy, const float* w, float* dx, float* room) const;
  // dw [out_c, in_c, kernel_h, kernel_w] += the gradient for the weights
  void backward_weights(const float* x, const float* dy, float* dw, float* room) const;

 private:
  // Windows of images [first, first + count) over row `row` of the input.
  struct Strip {
    int64_t first, count, row;
  };
  // The rows of the window that end up on an input row: kernel_h rows fall into stride_h classes.
  struct WindowRows {
    int64_t first, count;  // of the window: first, first + stride_h, ...
    int64_t out;           // the output row that the first of them belongs to; the next one belongs to out - 1
  };

  WindowRows window_rows(int64_t input_row) const;
  int64_t rows_in_class(int64_t first) const { return (a_.kernel_h - first + a_.stride_h - 1) / a_.stride_h; }
  // Where the weights of a class begin, as floats, when classes lie one after the other.
  int64_t class_offset(int64_t first) const;
  template <typename Visit>
  void for_each_window(const Strip&, const Visit&) const;
  template <typename Work>
  void for_strips(float* room, const Work&) const;

  void copy_windows(const Strip&, const float* x, float* to) const;
  void add_windows(const Strip&, const float* from, float* dx) const;
  void copy_gradients(const Strip&, const WindowRows&, const float* dy, float* to) const;

  Conv2dArgs a_;
  int64_t window_;   // floats of a window's row
  int64_t images_;   // of a strip, at most
  int64_t weights_;  // floats of all weights
  int64_t pieces_;   // into which the input's rows are split, to compute them in parallel
  int64_t factors_;  // floats of the factors of one piece
};

}  // namespace dgc
