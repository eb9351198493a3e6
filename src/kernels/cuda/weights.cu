#include <limits>

#include "kernels/cuda/im2col.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/weights.cuh"
#include "kernels/cuda/weights.h"

namespace dgc::cuda {
namespace {

FilterShape filter_shape(const Conv2dArgs& args) {
  const int64_t in = args.in_c / args.groups, taps = args.kernel_h * args.kernel_w;
  DGC_CHECK(args.out_c * in * taps <= std::numeric_limits<int32_t>::max(), "a convolution has 2^31 weights or more");
  return {static_cast<uint32_t>(args.out_c), static_cast<uint32_t>(in), static_cast<uint32_t>(taps)};
}

}  // namespace

size_t filter_bytes(const Conv2dArgs& args, DType type) { return filter_shape(args).numel() * dtype_size(type); }

void load_filter(CudaBackend& backend, const Conv2dArgs& args, ConstView w, DType type, void* to) {
  Queue queue(backend);
  load_filter(queue, filter_shape(args), w, type, to);
}

void load_turned_filter(CudaBackend& backend, const Conv2dArgs& args, ConstView w, DType type, void* to) {
  Queue queue(backend);
  load_turned_filter(queue, filter_shape(args), static_cast<uint32_t>(args.groups), w, type, to);
}

void add_filter(CudaBackend& backend, const Conv2dArgs& args, DType type, const void* from, View dw) {
  Queue queue(backend);
  add_filter(queue, filter_shape(args), type, from, dw);
}

void im2col(CudaBackend& backend, const Windows& windows, int64_t first, int64_t count, ConstView image,
            void* columns) {
  Queue queue(backend);
  im2col(queue, windows, first, count, image, columns);
}

void add_bias(CudaBackend& backend, ConstView b, View y) {
  Queue queue(backend);
  add_bias(queue, b, y);
}

void add_column_sums(CudaBackend& backend, ConstView dy, View db) {
  Queue queue(backend);
  add_column_sums(queue, dy, db);
}

}  // namespace dgc::cuda
