// Convolutions by oneDNN. Weights change every step, so each call copies them into the layout its primitive prefers;
// they are small next to the images. The copy lives in the shared scratch, where the primitive finds it in cache.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/elementwise.h"

namespace dgc {
namespace {

constexpr size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Not called bind: std::byte brings std::bind into every call.
void set_handles(const PreparedConv& conv, ConstView image, ConstView result, std::byte* scratchpad) {
  set_data(conv.image, image.f32());
  set_data(conv.result, result.f32());
  set_data(conv.scratchpad, scratchpad);
}

}  // namespace

std::byte* CpuBackend::load_weights(const PreparedConv& conv, ConstView w) {
  const size_t copy_bytes = conv.reordered ? round_up(conv.weights_bytes) : 0;
  std::byte* const copy = scratch(copy_bytes + conv.scratchpad_bytes);
  set_data(conv.weights, dnnl_->load_weights(conv, w.f32(), reinterpret_cast<float*>(copy)));
  return copy + copy_bytes;
}

void CpuBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::forward, args, static_cast<bool>(b)});
  set_handles(conv, x, y, load_weights(conv, w));
  const auto image = dnnl_arg(DNNL_ARG_SRC, conv.image), weights = dnnl_arg(DNNL_ARG_WEIGHTS, conv.weights);
  const auto result = dnnl_arg(DNNL_ARG_DST, conv.result), room = dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad);
  if (b) {
    set_data(conv.bias, b.f32());
    dnnl_->run(conv.convolution, {image, weights, dnnl_arg(DNNL_ARG_BIAS, conv.bias), result, room});
  } else {
    dnnl_->run(conv.convolution, {image, weights, result, room});
  }
}

void CpuBackend::conv2d_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View dx) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::backward_data, args});
  set_handles(conv, dx, dy, load_weights(conv, w));
  dnnl_->run(conv.convolution,
             {dnnl_arg(DNNL_ARG_DIFF_DST, conv.result), dnnl_arg(DNNL_ARG_WEIGHTS, conv.weights),
              dnnl_arg(DNNL_ARG_DIFF_SRC, conv.image), dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad)});
}

void CpuBackend::conv2d_backward_weights(const Conv2dArgs& args, ConstView x, ConstView dy, View dw, View db) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::backward_weights, args, static_cast<bool>(db)});
  const size_t weights_bytes = round_up(conv.weights_bytes);
  const size_t bias_bytes = db ? round_up(static_cast<size_t>(args.out_c) * sizeof(float)) : 0;
  std::byte* const memory = scratch(weights_bytes + bias_bytes + conv.scratchpad_bytes);
  set_data(conv.weights, memory);
  set_handles(conv, x, dy, memory + weights_bytes + bias_bytes);

  const auto image = dnnl_arg(DNNL_ARG_SRC, conv.image), result = dnnl_arg(DNNL_ARG_DIFF_DST, conv.result);
  const auto weights = dnnl_arg(DNNL_ARG_DIFF_WEIGHTS, conv.weights);
  const auto room = dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad);
  if (db) {
    set_data(conv.bias, memory + weights_bytes);
    dnnl_->run(conv.convolution, {image, result, weights, dnnl_arg(DNNL_ARG_DIFF_BIAS, conv.bias), room});
    add_chunk(reinterpret_cast<const float*>(memory + weights_bytes), args.out_c, db.f32());
  } else {
    dnnl_->run(conv.convolution, {image, result, weights, room});
  }
  if (dw) {
    set_data(conv.user_weights, dw.f32());
    dnnl_->run(conv.reorder, {dnnl_arg(DNNL_ARG_FROM, conv.weights), dnnl_arg(DNNL_ARG_TO, conv.user_weights)});
  }
}

}  // namespace dgc
