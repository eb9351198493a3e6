// Convolutions by cuDNN, and as matrix products (conv_columns.h) where cuDNN has no deterministic plan. Both want
// weights in the order that the images have and in the activations' type. In the pass of a network they lie so in the
// filter bank (filter_bank.h), which takes their gradients too. Elsewhere a call copies them to the workspace, behind
// which lies the scratch memory of what computes, and adds their gradient from there.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/conv_columns.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/filter_bank.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::aligned_bytes, cuda::ConvKey, cuda::ConvPass, cuda::ConvPlan;

namespace {

// The plan for images at x and y; null where cuDNN has none, or where an image does not begin as plans ask.
const ConvPlan* find_plan(cuda::ConvCache& plans, cudnnHandle_t dnn, const ConvKey& key, const void* x, const void* y) {
  return cuda::aligned(x, y) ? plans.find(dnn, key) : nullptr;
}

}  // namespace

CudaBackend::FilterMemory CudaBackend::filter_memory(const Conv2dArgs& args, ConstView w, DType type,
                                                     size_t scratch_bytes) {
  if (const void* const banked = filters_->filter(w.data)) return {banked, workspace(scratch_bytes)};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), type));
  std::byte* const filter = workspace(filter_bytes + scratch_bytes);
  cuda::load_filters(*this, type, {{{args.filter(), w.data, filter}}});
  return {filter, filter + filter_bytes};
}

void CudaBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  cudnnHandle_t dnn = libraries_->dnn();
  if (b) {
    const ConvKey with_bias{ConvPass::forward, args, x.dtype, true};
    if (const ConvPlan* const plan = find_plan(*convolutions_, dnn, with_bias, x.data, y.data)) {
      const size_t bias_bytes = aligned_bytes(static_cast<size_t>(b.numel()) * dtype_size(x.dtype));
      const auto [filter, scratch] = filter_memory(args, w, x.dtype, bias_bytes + plan->workspace_bytes());
      const void* bias = b.data;
      if (x.dtype != DType::f32) {
        convert(b, {scratch, b.shape, x.dtype});
        bias = scratch;
      }
      return plan->run(dnn, {x.data, filter, y.data, scratch + bias_bytes, bias});
    }
  }
  const ConvKey key{ConvPass::forward, args, x.dtype};
  if (const ConvPlan* const plan = find_plan(*convolutions_, dnn, key, x.data, y.data)) {
    const auto [filter, scratch] = filter_memory(args, w, x.dtype, plan->workspace_bytes());
    plan->run(dnn, {x.data, filter, y.data, scratch});
  } else {
    const cuda::ColumnConv conv(key);
    const cuda::Product product{libraries_->blas(), math_, x.dtype};
    const auto [filter, scratch] = filter_memory(args, w, x.dtype, conv.columns_bytes());
    conv.multiply(*this, product, x, filter, y, scratch);
  }
  if (b) cuda::add_bias(*this, b, y);
}

void CudaBackend::conv2d_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View dx) {
  cudnnHandle_t dnn = libraries_->dnn();
  const ConvKey key{ConvPass::backward_data, args, dy.dtype};
  const ConvPlan* const plan = find_plan(*convolutions_, dnn, key, dx.data, dy.data);
  if (plan != nullptr) {
    const auto [filter, scratch] = filter_memory(args, w, dy.dtype, plan->workspace_bytes());
    plan->run(dnn, {dx.data, filter, dy.data, scratch});
  } else {
    const cuda::ColumnConv conv(key);
    const cuda::Product product{libraries_->blas(), math_, dy.dtype};
    const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), dy.dtype));
    std::byte* const filter = workspace(filter_bytes + conv.columns_bytes());
    cuda::load_turned_filter(*this, args, w, dy.dtype, filter);
    conv.multiply(*this, product, dy, filter, dx, filter + filter_bytes);
  }
}

void CudaBackend::conv2d_add_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View spare, View dx) {
  cudnnHandle_t dnn = libraries_->dnn();
  const ConvKey key{ConvPass::backward_data, args, dy.dtype, true};
  const ConvPlan* const plan = find_plan(*convolutions_, dnn, key, dx.data, dy.data);
  if (plan == nullptr) return Backend::conv2d_add_backward_data(args, dy, w, spare, dx);
  const auto [filter, scratch] = filter_memory(args, w, dy.dtype, plan->workspace_bytes());
  plan->run(dnn, {dx.data, filter, dy.data, scratch});
}

void CudaBackend::conv2d_backward_weights(const Conv2dArgs& args, ConstView x, ConstView dy, View dw, View db) {
  if (db) cuda::add_column_sums(*this, dy, db);
  if (!dw) return;
  cudnnHandle_t dnn = libraries_->dnn();
  const ConvKey key{ConvPass::backward_weights, args, dy.dtype};
  const ConvPlan* const plan = find_plan(*convolutions_, dnn, key, x.data, dy.data);
  if (plan != nullptr) {
    if (void* const banked = filters_->gradient(dw.data)) {
      return plan->run(dnn, {x.data, banked, dy.data, workspace(plan->workspace_bytes())});
    }
  }
  const DType type = plan != nullptr ? dy.dtype : DType::f32;
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), type));
  std::byte* filter = nullptr;
  if (plan != nullptr) {
    filter = workspace(filter_bytes + plan->workspace_bytes());
    plan->run(dnn, {x.data, filter, dy.data, filter + filter_bytes});
  } else {
    const cuda::ColumnConv conv(key);
    const cuda::Product product{libraries_->blas(), math_, dy.dtype};
    filter = workspace(filter_bytes + conv.columns_bytes());
    conv.multiply_transposed(*this, product, x, dy, reinterpret_cast<float*>(filter), filter + filter_bytes);
  }
  cuda::add_filters(*this, type, {{{args.filter(), filter, dw.data}}});
}

}  // namespace dgc
