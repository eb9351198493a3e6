#include "layers/pool.h"

#include "layers/image_shape.h"

namespace dgc {

Pool::Pool(const PoolOptions& options) : options_(options) {
  if (options.kernel < 1 || options.stride < 1 || options.pad < 0 || 2 * options.pad > options.kernel) {
    throw_user_error("pool: kernel {} and stride {} must be positive, padding {} at most half the kernel",
                     options.kernel, options.stride, options.pad);
  }
  if (options.kernel > PoolArgs::kMostKernel) {
    throw_user_error("pool: kernel {} is larger than {}", options.kernel, PoolArgs::kMostKernel);
  }
}

Shape Pool::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "pool");
  const PoolArgs a = args(in[0]);
  if (a.in_h + 2 * a.pad_h < a.kernel_h || a.in_w + 2 * a.pad_w < a.kernel_w) {
    throw_user_error("pool: kernel {} with padding {} is larger than its input {}", options_.kernel, options_.pad,
                     in[0].str());
  }
  return {a.batch, a.out_h(), a.out_w(), a.channels};
}

PoolArgs Pool::args(const Shape& x) const {
  return {.kind = options_.kind,
          .batch = x[0],
          .in_h = x[1],
          .in_w = x[2],
          .channels = x[3],
          .kernel_h = options_.kernel,
          .kernel_w = options_.kernel,
          .stride_h = options_.stride,
          .stride_w = options_.stride,
          .pad_h = options_.pad,
          .pad_w = options_.pad};
}

size_t Pool::saved_bytes(Backend&, std::span<const Shape> in, DType) const { return args(in[0]).saved_bytes(); }

void Pool::forward(const ForwardArgs& f) const { f.backend.pool_forward(args(f.x[0].shape), f.x[0], f.y, f.saved); }

void Pool::backward(const BackwardArgs& b) const {
  if (b.dx[0]) b.backend.pool_backward(args(b.x[0].shape), b.dy, b.saved, b.dx[0]);
}

Shape GlobalPool::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "global_pool");
  return {in[0][0], in[0][3]};
}

void GlobalPool::forward(const ForwardArgs& f) const {
  const Shape& x = f.x[0].shape;
  f.backend.global_pool_forward({x[0], x[1] * x[2], x[3]}, f.x[0], f.y);
}

void GlobalPool::backward(const BackwardArgs& b) const {
  const Shape& x = b.x[0].shape;
  if (b.dx[0]) b.backend.global_pool_backward({x[0], x[1] * x[2], x[3]}, b.dy, b.dx[0]);
}

}  // namespace dgc
