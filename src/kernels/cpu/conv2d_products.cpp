#include "kernels/cpu/conv2d_products.h"

#include <algorithm>
#include <exception>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product.h"

namespace dgc {
namespace {

constexpr int64_t kStripRows = 512;                  // rows of a factor, about: enough for a product, few for a cache
constexpr int64_t kPieces = 32;                      // at most
constexpr int64_t kSums = int64_t{4} * 1024 * 1024;  // floats for all pieces' gradients of the weights

}  // namespace

ConvProducts::ConvProducts(const Conv2dArgs& args)
    : a_(args),
      window_(args.kernel_w * args.in_c),
      images_(std::clamp<int64_t>(kStripRows / args.out_w(), 1, args.batch)),
      weights_(args.out_c * args.in_c * args.kernel_h * args.kernel_w),
      pieces_(std::clamp<int64_t>(kSums / weights_, 1, std::min(kPieces, args.in_h))),
      factors_(images_ * args.out_w() * (window_ + rows_in_class(0) * args.out_c)) {}

int64_t ConvProducts::room_floats() const { return pieces_ * (weights_ + factors_); }

ConvProducts::WindowRows ConvProducts::window_rows(int64_t input_row) const {
  const int64_t padded = input_row + a_.pad_h, first = padded % a_.stride_h;
  return {first, rows_in_class(first), padded / a_.stride_h};
}

int64_t ConvProducts::class_offset(int64_t first) const {
  int64_t rows = 0;
  for (int64_t before = 0; before < first; ++before) rows += rows_in_class(before);
  return rows * window_ * a_.out_c;
}

// Calls visit(window, inside, floats, image) for each window of a strip: `inside` floats after the window's begin lie
// `floats` floats of the input, at `image` floats from its begin. The others of the window are padding.
template <typename Visit>
void ConvProducts::for_each_window(const Strip& strip, const Visit& visit) const {
  for (int64_t n = strip.first; n < strip.first + strip.count; ++n) {
    const int64_t row = (n * a_.in_h + strip.row) * a_.in_w;
    for (int64_t out = 0; out < a_.out_w(); ++out) {
      const int64_t begin = out * a_.stride_w - a_.pad_w;
      const int64_t from = std::max<int64_t>(begin, 0), end = std::min(begin + a_.kernel_w, a_.in_w);
      const int64_t floats = std::max<int64_t>(end - from, 0) * a_.in_c;
      visit(((n - strip.first) * a_.out_w() + out) * window_, (from - begin) * a_.in_c, floats, (row + from) * a_.in_c);
    }
  }
}

void ConvProducts::copy_windows(const Strip& strip, const float* x, float* to) const {
  for_each_window(strip, [&](int64_t window, int64_t inside, int64_t floats, int64_t image) {
    if (floats < window_) std::fill_n(to + window, window_, 0.f);
    if (floats > 0) std::copy_n(x + image, floats, to + window + inside);
  });
}

void ConvProducts::add_windows(const Strip& strip, const float* from, float* dx) const {
  for_each_window(strip, [&](int64_t window, int64_t inside, int64_t floats, int64_t image) {
    for (int64_t i = 0; i < floats; ++i) dx[image + i] += from[window + inside + i];
  });
}

void ConvProducts::copy_gradients(const Strip& strip, const WindowRows& rows, const float* dy, float* to) const {
  const int64_t out_w = a_.out_w(), channels = a_.out_c;
  for (int64_t n = strip.first; n < strip.first + strip.count; ++n) {
    for (int64_t j = 0; j < rows.count; ++j) {
      const int64_t out = rows.out - j;
      const bool there = out >= 0 && out < a_.out_h();
      const float* from = dy + (n * a_.out_h() + out) * out_w * channels;
      float* at = to + ((n - strip.first) * out_w * rows.count + j) * channels;
      for (int64_t i = 0; i < out_w; ++i, from += channels, at += rows.count * channels) {
        if (there) {
          std::copy_n(from, channels, at);
        } else {
          std::fill_n(at, channels, 0.f);
        }
      }
    }
  }
}

// Calls work(piece, strip, rows, windows, gradients) for all strips to which weights lead. Strips of one piece come one
// after the other; `windows` and `gradients` are memory of the piece for the two factors. Work may throw.
template <typename Work>
void ConvProducts::for_strips(float* room, const Work& work) const {
  const int64_t each = (a_.in_h + pieces_ - 1) / pieces_;
  const auto compute_piece = [&](int64_t first_row, int64_t count) {
    const int64_t piece = first_row / each;
    float* const windows = room + piece * factors_;
    float* const gradients = windows + images_ * a_.out_w() * window_;
    for (int64_t row = first_row; row < first_row + count; ++row) {
      const WindowRows rows = window_rows(row);
      if (rows.count == 0) continue;
      for (int64_t n = 0; n < a_.batch; n += images_) {
        work(piece, Strip{n, std::min(images_, a_.batch - n), row}, rows, windows, gradients);
      }
    }
  };
  std::exception_ptr failure;
  for_chunks(a_.in_h, each, [&](int64_t first_row, int64_t count) {
    try {
      compute_piece(first_row, count);
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void ConvProducts::backward_data(const float* dy, const float* w, float* dx, float* room) const {
  float* const by_class = room + pieces_ * factors_;  // [class][row of the class][out_c][kernel_w][in_c]
  for_chunks(a_.kernel_h, 1, [&](int64_t row, int64_t) {
    float* to = by_class + class_offset(row % a_.stride_h) + row / a_.stride_h * a_.out_c * window_;
    for (int64_t o = 0; o < a_.out_c; ++o) {
      for (int64_t column = 0; column < a_.kernel_w; ++column) {
        for (int64_t i = 0; i < a_.in_c; ++i) {
          *to++ = w[((o * a_.in_c + i) * a_.kernel_h + row) * a_.kernel_w + column];
        }
      }
    }
  });
  for_chunks(a_.batch * a_.in_h * a_.in_w * a_.in_c, kElementwiseChunk,
             [&](int64_t first, int64_t count) { std::fill_n(dx + first, count, 0.f); });
  for_strips(room, [&](int64_t, const Strip& strip, const WindowRows& rows, float* windows, float* gradients) {
    const int64_t columns = rows.count * a_.out_c;
    copy_gradients(strip, rows, dy, gradients);
    multiply_exactly(strip.count * a_.out_w(), window_, columns, {gradients, columns},
                     {by_class + class_offset(rows.first), window_}, false, windows);
    add_windows(strip, windows, dx);
  });
}

void ConvProducts::backward_weights(const float* x, const float* dy, float* dw, float* room) const {
  float* const sums = room + pieces_ * factors_;  // [piece][class][kernel_w][in_c][row of the class][out_c]
  for_chunks(pieces_ * weights_, kElementwiseChunk,
             [&](int64_t first, int64_t count) { std::fill_n(sums + first, count, 0.f); });
  for_strips(room, [&](int64_t piece, const Strip& strip, const WindowRows& rows, float* windows, float* gradients) {
    const int64_t columns = rows.count * a_.out_c;
    copy_windows(strip, x, windows);
    copy_gradients(strip, rows, dy, gradients);
    multiply_exactly(window_, columns, strip.count * a_.out_w(), {windows, window_, 'T'}, {gradients, columns}, true,
                     sums + piece * weights_ + class_offset(rows.first));
  });
  for_chunks(weights_, kElementwiseChunk, [&](int64_t first, int64_t count) {
    for (int64_t piece = 1; piece < pieces_; ++piece) {
      const float* const more = sums + piece * weights_;
      for (int64_t i = first; i < first + count; ++i) sums[i] += more[i];
    }
  });
  for_chunks(a_.out_c, 1, [&](int64_t o, int64_t) {
    for (int64_t row = 0; row < a_.kernel_h; ++row) {
      const int64_t first = row % a_.stride_h, columns = rows_in_class(first) * a_.out_c;
      const float* const from = sums + class_offset(first) + row / a_.stride_h * a_.out_c + o;
      for (int64_t i = 0; i < a_.in_c; ++i) {
        float* const to = dw + ((o * a_.in_c + i) * a_.kernel_h + row) * a_.kernel_w;
        for (int64_t column = 0; column < a_.kernel_w; ++column) to[column] += from[(column * a_.in_c + i) * columns];
      }
    }
  });
}

}  // namespace dgc
