// Convolutions by cuDNN, and as matrix products (conv_columns.h) where cuDNN has no deterministic plan that it
// executes. Both want weights in the order that the images have and in the activations' type. In the pass of a network
// they lie so in the filter bank (filter_bank.h), which takes their gradients too. Elsewhere a call copies them to the
// workspace, behind which lies the scratch memory of what computes, and adds their gradient from there.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/conv_columns.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/filter_bank.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::aligned_bytes, cuda::ConvPlan;

bool CudaBackend::with_plan(const PlannedConv& key, const void* x, const void* y,
                            const std::function<void(const ConvPlan&)>& queue) {
  return cuda::aligned(x, y) && convolutions_->run(libraries_->dnn(), *cuda_device_, key, queue);
}

CudaBackend::FilterMemory CudaBackend::filter_memory(const Conv2dArgs& args, ConstView w, DType type,
                                                     size_t scratch_bytes) {
  if (const void* const banked = filters_->filter(w.data)) return {banked, workspace(scratch_bytes)};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), type));
  std::byte* const filter = workspace(filter_bytes + scratch_bytes);
  cuda::load_filters(*this, type, {{{args.filter(), w.data, filter}}});
  return {filter, filter + filter_bytes};
}

bool CudaBackend::run_plan(const PlannedConv& key, const void* x, ConstView w, const void* y) {
  return with_plan(key, x, y, [&](const ConvPlan& plan) {
    const auto [filter, scratch] = filter_memory(key.args, w, key.type, plan.workspace_bytes());
    plan.run(libraries_->dnn(), {x, filter, y, scratch});
  });
}

bool CudaBackend::run_plan_with_bias(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  return with_plan({ConvPass::forward, args, x.dtype, true}, x.data, y.data, [&](const ConvPlan& plan) {
    const size_t bias_bytes = aligned_bytes(static_cast<size_t>(b.numel()) * dtype_size(x.dtype));
    const auto [filter, scratch] = filter_memory(args, w, x.dtype, bias_bytes + plan.workspace_bytes());
    const void* bias = b.data;
    if (x.dtype != DType::f32) {
      convert(b, {scratch, b.shape, x.dtype});
      bias = scratch;
    }
    plan.run(libraries_->dnn(), {x.data, filter, y.data, scratch + bias_bytes, bias});
  });
}

void CudaBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  if (b && run_plan_with_bias(args, x, w, b, y)) return;
  const PlannedConv key{ConvPass::forward, args, x.dtype};
  if (!run_plan(key, x.data, w, y.data)) {
    const cuda::ColumnConv conv(key);
    const cuda::Product product{libraries_->blas(), math_, x.dtype};
    const auto [filter, scratch] = filter_memory(args, w, x.dtype, conv.columns_bytes());
    conv.multiply(*this, product, x, filter, y, scratch);
  }
  if (b) cuda::add_bias(*this, b, y);
}

void CudaBackend::conv2d_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View dx) {
  const PlannedConv key{ConvPass::backward_data, args, dy.dtype};
  if (run_plan(key, dx.data, w, dy.data)) return;
  const cuda::ColumnConv conv(key);
  const cuda::Product product{libraries_->blas(), math_, dy.dtype};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), dy.dtype));
  std::byte* const filter = workspace(filter_bytes + conv.columns_bytes());
  cuda::load_turned_filter(*this, args, w, dy.dtype, filter);
  conv.multiply(*this, product, dy, filter, dx, filter + filter_bytes);
}

void CudaBackend::conv2d_add_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View spare, View dx) {
  if (run_plan({ConvPass::backward_data, args, dy.dtype, true}, dx.data, w, dy.data)) return;
  Backend::conv2d_add_backward_data(args, dy, w, spare, dx);
}

void CudaBackend::conv2d_backward_weights(const Conv2dArgs& args, ConstView x, ConstView dy, View dw, View db) {
  if (db) cuda::add_column_sums(*this, dy, db);
  const PlannedConv key{ConvPass::backward_weights, args, dy.dtype};
  const bool is_done = with_plan(key, x.data, dy.data, [&](const ConvPlan& plan) {
    if (void* const banked = filters_->gradient(dw.data)) {
      plan.run(libraries_->dnn(), {x.data, banked, dy.data, workspace(plan.workspace_bytes())});
      return filters_->wrote_gradient(dw.data);
    }
    const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), dy.dtype));
    std::byte* const filter = workspace(filter_bytes + plan.workspace_bytes());
    plan.run(libraries_->dnn(), {x.data, filter, dy.data, filter + filter_bytes});
    cuda::add_filters(*this, dy.dtype, {{{args.filter(), filter, dw.data}}});
  });
  if (is_done) return;
  const cuda::ColumnConv conv(key);
  const cuda::Product product{libraries_->blas(), math_, dy.dtype};
  const size_t filter_bytes = aligned_bytes(cuda::filter_bytes(args.filter(), DType::f32));
  std::byte* const filter = workspace(filter_bytes + conv.columns_bytes());
  conv.multiply_transposed(*this, product, x, dy, reinterpret_cast<float*>(filter), filter + filter_bytes);
  cuda::add_filters(*this, DType::f32, {{{args.filter(), filter, dw.data}}});
}

}  // namespace dgc
