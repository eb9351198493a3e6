#include "kernels/cuda/conv_columns.h"

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/libraries.h"

namespace dgc::cuda {
namespace {

struct Axis {
  int64_t in, out, kernel, stride, pad;
};

WindowAxis over_x(const Axis& a) {
  return {.pixels = to_int(a.in),
          .windows = to_int(a.out),
          .taps = to_int(a.kernel),
          .step = to_int(a.stride),
          .pad = to_int(a.pad)};
}

// Pixel i of x meets tap k of window (i + pad - k) / stride. With the taps counted from the last to the first, that is
// (i + k - (kernel - 1 - pad)) / stride.
WindowAxis over_dy(const Axis& a) {
  return {.pixels = to_int(a.out),
          .windows = to_int(a.in),
          .taps = to_int(a.kernel),
          .pad = to_int(a.kernel - 1) - to_int(a.pad),
          .spread = to_int(a.stride)};
}

Windows windows_of(const PlannedConv& key) {
  const Conv2dArgs& a = key.args;
  const Axis h{a.in_h, a.out_h(), a.kernel_h, a.stride_h, a.pad_h};
  const Axis w{a.in_w, a.out_w(), a.kernel_w, a.stride_w, a.pad_w};
  const int groups = to_int(a.groups);
  if (key.pass == ConvPass::backward_data) return {over_dy(h), over_dy(w), groups, to_int(a.out_c / a.groups)};
  return {over_x(h), over_x(w), groups, to_int(a.in_c / a.groups)};
}

// The same numbers from a later one on.
const void* from(const void* data, DType type, int64_t first) {
  return static_cast<const std::byte*>(data) + static_cast<size_t>(first) * dtype_size(type);
}
void* from(void* data, DType type, int64_t first) {
  return static_cast<std::byte*>(data) + static_cast<size_t>(first) * dtype_size(type);
}

}  // namespace

ColumnConv::ColumnConv(const PlannedConv& key, size_t most_columns)
    : windows_(windows_of(key)), all_windows_(key.args.batch * windows_.per_image()), type_(key.type) {
  const Conv2dArgs& a = key.args;
  out_channels_ = (key.pass == ConvPass::backward_data ? a.in_c : a.out_c) / a.groups;
  const auto row_bytes = windows_.columns() * static_cast<int64_t>(dtype_size(type_));
  at_once_ = std::clamp<int64_t>(static_cast<int64_t>(most_columns) / row_bytes, 1, std::max<int64_t>(all_windows_, 1));
}

size_t ColumnConv::columns_bytes() const {
  return static_cast<size_t>(at_once_ * windows_.columns()) * dtype_size(type_);
}

template <typename Body>
void ColumnConv::each_stretch(CudaBackend& backend, ConstView image, void* columns, const Body& body) const {
  for (int64_t first = 0; first < all_windows_; first += at_once_) {
    const int64_t count = std::min(at_once_, all_windows_ - first);
    im2col(backend, windows_, first, count, image, columns);
    body(first, count);
  }
}

void ColumnConv::multiply(CudaBackend& backend, const Product& product, ConstView image, const void* filter, View out,
                          void* columns) const {
  const int64_t sum = windows_.taps() * windows_.channels, row_length = windows_.groups * out_channels_;
  each_stretch(backend, image, columns, [&](int64_t first, int64_t count) {
    for (int64_t group = 0; group < windows_.groups; ++group) {
      product(count, out_channels_, sum, {from(columns, type_, group * sum), windows_.columns()},
              {from(filter, type_, group * out_channels_ * sum), sum, true}, 0,
              {from(out.data, type_, first * row_length + group * out_channels_), type_, row_length});
    }
  });
}

void ColumnConv::multiply_transposed(CudaBackend& backend, const Product& product, ConstView x, ConstView dy,
                                     float* dfilter, void* columns) const {
  const int64_t numel = windows_.taps() * windows_.channels, row_length = windows_.groups * out_channels_;
  each_stretch(backend, x, columns, [&](int64_t first, int64_t count) {
    for (int64_t group = 0; group < windows_.groups; ++group) {
      product(out_channels_, numel, count,
              {from(dy.data, type_, first * row_length + group * out_channels_), row_length, true},
              {from(columns, type_, group * numel), windows_.columns()}, first > 0 ? 1 : 0,
              {dfilter + group * out_channels_ * numel, DType::f32, numel});
    }
  });
}

}  // namespace dgc::cuda
