// Im2col: windows of NHWC images as the rows of a matrix, so that a convolution is a matrix product for each group of
// channels (im2col.h has the shapes). A thread moves one pack of neighbouring channels. Each number of the columns is
// written once; where a tap meets no pixel, it is 0.
#pragma once

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/im2col.h"

namespace dgc::cuda {

// Returns -1 where the tap meets no pixel.
__device__ inline int pixel_of(const WindowAxis& axis, int window, int tap) {
  const int at = window * axis.step + tap - axis.pad;
  return at >= 0 && at % axis.spread == 0 && at / axis.spread < axis.pixels ? at / axis.spread : -1;
}

template <typename T, int V>
struct Im2col : ElementwiseKernel {
  static constexpr const char* kName = "im2col";
  struct Args {
    Windows windows;
    int64_t first;  // window
    uint32_t n;     // numbers to write
    const T* image;
    T* columns;
  };

  __device__ static void run(const Args& a, Shared&) {
    const Windows& s = a.windows;
    const uint32_t at = (blockIdx.x * kBlock + threadIdx.x) * V;
    if (at >= a.n) return;
    uint32_t rest = at;
    const auto next = [&rest](int size) {
      const uint32_t digit = rest % static_cast<uint32_t>(size);
      rest /= static_cast<uint32_t>(size);
      return static_cast<int>(digit);
    };
    const int channel = next(s.channels), tap_w = next(s.w.taps), tap_h = next(s.h.taps), group = next(s.groups);
    const int64_t window = a.first + rest, row = window / s.w.windows, image = row / s.h.windows;
    const int h = pixel_of(s.h, static_cast<int>(row % s.h.windows), tap_h);
    const int w = pixel_of(s.w, static_cast<int>(window % s.w.windows), tap_w);
    Pack<T, V> pack{};
    if (h >= 0 && w >= 0) {
      const int64_t pixel = (image * s.h.pixels + h) * s.w.pixels + w;
      pack = load_pack<V>(a.image + (pixel * s.groups + group) * s.channels + channel);
    }
    store_pack<V>(pack, a.columns + at);
  }
};

template <typename Queue>
void im2col(Queue& queue, const Windows& windows, int64_t first, int64_t count, ConstView image, void* columns) {
  const int64_t n = count * windows.columns();
  DGC_CHECK(n < int64_t{1} << 31, "the columns of a convolution are 2^31 numbers or more");
  dispatch_size(image.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.template run<Im2col<T, V>>(elementwise_blocks(n, V), {windows, first, static_cast<uint32_t>(n),
                                                                  pointer<T>(image), static_cast<T*>(columns)});
    };
    dispatch_packs<T>(windows.channels, run, image.data, columns);
  });
}

}  // namespace dgc::cuda
