// Linear layers as matrix products. With 16-bit activations the weights are rounded to the activations' type first;
// gradients of weights are fp32 throughout.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::BlasFactor, cuda::Product;

// Returns the weights in the type of the activations: the weights themselves in fp32, else a copy in the workspace.
const void* CudaBackend::weights_as(DType type, ConstView w) {
  if (type == DType::f32) return w.data;
  const View copy{workspace(static_cast<size_t>(w.numel()) * dtype_size(type)), w.shape, type};
  convert(w, copy);
  return copy.data;
}

void CudaBackend::linear_forward(const LinearArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  const Product product{libraries_->blas(), math_, x.dtype};
  const BlasFactor weights{weights_as(x.dtype, w), args.in, true};
  product(args.batch, args.out, args.in, {x.data, args.in}, weights, 0, {y.data, y.dtype, args.out});
  if (b) cuda::add_bias(*this, b, y);
}

void CudaBackend::linear_backward(const LinearArgs& args, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                                  View db) {
  const Product product{libraries_->blas(), math_, dy.dtype};
  if (dx) {
    const BlasFactor weights{weights_as(dy.dtype, w), args.in};
    product(args.batch, args.in, args.out, {dy.data, args.out}, weights, 0, {dx.data, dx.dtype, args.in});
  }
  product(args.out, args.in, args.batch, {dy.data, args.out, true}, {x.data, args.in}, 1, {dw.data, dw.dtype, args.in});
  if (db) cuda::add_column_sums(*this, dy, db);
}

}  // namespace dgc
