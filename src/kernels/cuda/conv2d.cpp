// Convolutions by cuDNN, and as matrix products (conv_columns.h) where cuDNN has no deterministic algorithm. Weights
// change every step, so each call that reads weights first copies them into the order that the images have and into the
// activations' type; weights are small next to the images. The copy and the scratch memory of what computes lie in the
// workspace, one behind the other. The gradient of the weights is computed in the workspace and then added to dw.
#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/conv_columns.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::check, cuda::aligned_bytes, cuda::ConvPass;

namespace {

constexpr float kOne = 1, kZero = 0;

}  // namespace

void CudaBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  cudnnHandle_t dnn = libraries_->dnn();
  const cuda::ConvKey key{ConvPass::forward, args, x.dtype};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args, x.dtype));
  if (const cuda::PreparedConv* const c = convolutions_->find(dnn, key)) {
    std::byte* const filter = workspace(filter_bytes + c->workspace_bytes);
    cuda::load_filter(*this, args, w, x.dtype, filter);
    check(cudnnConvolutionForward(dnn, &kOne, c->x, x.data, c->w, filter, c->conv, c->algorithm.forward,
                                  filter + filter_bytes, c->workspace_bytes, &kZero, c->y, y.data),
          "cudnnConvolutionForward");
  } else {
    const cuda::ColumnConv conv(key);
    const cuda::Product product{libraries_->blas(), math_, x.dtype};
    std::byte* const filter = workspace(filter_bytes + conv.columns_bytes());
    cuda::load_filter(*this, args, w, x.dtype, filter);
    conv.multiply(*this, product, x, filter, y, filter + filter_bytes);
  }
  if (b) cuda::add_bias(*this, b, y);
}

void CudaBackend::conv2d_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View dx) {
  cudnnHandle_t dnn = libraries_->dnn();
  const cuda::ConvKey key{ConvPass::backward_data, args, dy.dtype};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args, dy.dtype));
  if (const cuda::PreparedConv* const c = convolutions_->find(dnn, key)) {
    std::byte* const filter = workspace(filter_bytes + c->workspace_bytes);
    cuda::load_filter(*this, args, w, dy.dtype, filter);
    check(cudnnConvolutionBackwardData(dnn, &kOne, c->w, filter, c->y, dy.data, c->conv, c->algorithm.backward_data,
                                       filter + filter_bytes, c->workspace_bytes, &kZero, c->x, dx.data),
          "cudnnConvolutionBackwardData");
  } else {
    const cuda::ColumnConv conv(key);
    const cuda::Product product{libraries_->blas(), math_, dy.dtype};
    std::byte* const filter = workspace(filter_bytes + conv.columns_bytes());
    cuda::load_turned_filter(*this, args, w, dy.dtype, filter);
    conv.multiply(*this, product, dy, filter, dx, filter + filter_bytes);
  }
}

void CudaBackend::conv2d_backward_weights(const Conv2dArgs& args, ConstView x, ConstView dy, View dw, View db) {
  if (dw) {
    cudnnHandle_t dnn = libraries_->dnn();
    const cuda::ConvKey key{ConvPass::backward_weights, args, dy.dtype};
    if (const cuda::PreparedConv* const c = convolutions_->find(dnn, key)) {
      const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args, dy.dtype));
      std::byte* const filter = workspace(filter_bytes + c->workspace_bytes);
      check(cudnnConvolutionBackwardFilter(dnn, &kOne, c->x, x.data, c->y, dy.data, c->conv,
                                           c->algorithm.backward_weights, filter + filter_bytes, c->workspace_bytes,
                                           &kZero, c->w, filter),
            "cudnnConvolutionBackwardFilter");
      cuda::add_filter(*this, args, dy.dtype, filter, dw);
    } else {
      const cuda::ColumnConv conv(key);
      const cuda::Product product{libraries_->blas(), math_, dy.dtype};
      const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args, DType::f32));
      std::byte* const filter = workspace(filter_bytes + conv.columns_bytes());
      conv.multiply_transposed(*this, product, x, dy, reinterpret_cast<float*>(filter), filter + filter_bytes);
      cuda::add_filter(*this, args, DType::f32, filter, dw);
    }
  }
  if (db) cuda::add_column_sums(*this, dy, db);
}

}  // namespace dgc
