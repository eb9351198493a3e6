// Convolutions by cuDNN, and as matrix products (conv_columns.h) where cuDNN has no deterministic plan. Weights change
// every step, so each call that reads weights first copies them into the order that the images have and into the
// activations' type; weights are small next to the images. The copy and the scratch memory of what computes lie in the
// workspace, one behind the other. The gradient of the weights is computed in the workspace and then added to dw.
#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/conv_columns.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::aligned_bytes, cuda::ConvPass, cuda::ConvPlan;

namespace {

// What plans ask of the memory of images. All buffers begin so, but a part of one need not.
bool is_aligned(const void* x, const void* y) {
  return (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % ConvPlan::kAlignment == 0;
}

}  // namespace

void CudaBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  cudnnHandle_t dnn = libraries_->dnn();
  const cuda::ConvKey key{ConvPass::forward, args, x.dtype};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args, x.dtype));
  const ConvPlan* const plan = is_aligned(x.data, y.data) ? convolutions_->find(dnn, key) : nullptr;
  if (plan != nullptr) {
    std::byte* const filter = workspace(filter_bytes + plan->workspace_bytes());
    cuda::load_filter(*this, args, w, x.dtype, filter);
    plan->run(dnn, x.data, filter, y.data, filter + filter_bytes);
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
  const ConvPlan* const plan = is_aligned(dx.data, dy.data) ? convolutions_->find(dnn, key) : nullptr;
  if (plan != nullptr) {
    std::byte* const filter = workspace(filter_bytes + plan->workspace_bytes());
    cuda::load_filter(*this, args, w, dy.dtype, filter);
    plan->run(dnn, dx.data, filter, dy.data, filter + filter_bytes);
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
    const ConvPlan* const plan = is_aligned(x.data, dy.data) ? convolutions_->find(dnn, key) : nullptr;
    if (plan != nullptr) {
      const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args, dy.dtype));
      std::byte* const filter = workspace(filter_bytes + plan->workspace_bytes());
      plan->run(dnn, x.data, filter, dy.data, filter + filter_bytes);
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
