// Convolutions by oneDNN. Weights change every step, so each call copies the weights into the layout that the primitive
// prefers. Weights are small next to the images, and the copy lies in the shared scratch memory, where the primitive
// finds it in the cache.
#include "kernels/cpu/conv2d_products.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/product.h"

namespace dgc {

// Returns the part of the scratch memory that is left for copies of images and for the primitive.
std::byte* CpuBackend::load_weights(const PreparedConv& conv, ConstView w) {
  const size_t copy_bytes = conv.reordered ? round_up(conv.weights_bytes) : 0;
  std::byte* const copy = scratch(copy_bytes + conv.room_bytes());
  set_data(conv.weights, dnnl_->load_weights(conv, w.f32(), reinterpret_cast<float*>(copy)));
  return copy + copy_bytes;
}

void CpuBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::forward, args, static_cast<bool>(b)});
  std::byte* const room = dnnl_->read_images(conv.image, x, load_weights(conv, w));
  set_data(conv.scratchpad, dnnl_->place_images(conv.result, y, room));
  const auto image = dnnl_arg(DNNL_ARG_SRC, conv.image.own), weights = dnnl_arg(DNNL_ARG_WEIGHTS, conv.weights);
  const auto result = dnnl_arg(DNNL_ARG_DST, conv.result.own);
  const auto scratchpad = dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad);
  if (b) {
    set_data(conv.bias, b.f32());
    dnnl_->run(conv.convolution, {image, weights, dnnl_arg(DNNL_ARG_BIAS, conv.bias), result, scratchpad});
  } else {
    dnnl_->run(conv.convolution, {image, weights, result, scratchpad});
  }
  dnnl_->write_images(conv.result);
}

void CpuBackend::conv2d_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View dx) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::backward_data, args});
  if (conv.as_products) {
    const ConvProducts products(args);
    return products.backward_data(dy.f32(), w.f32(), dx.f32(), scratch_floats(products.room_floats()));
  }
  std::byte* const room = dnnl_->read_images(conv.result, dy, load_weights(conv, w));
  set_data(conv.scratchpad, dnnl_->place_images(conv.image, dx, room));
  dnnl_->run(conv.convolution,
             {dnnl_arg(DNNL_ARG_DIFF_DST, conv.result.own), dnnl_arg(DNNL_ARG_WEIGHTS, conv.weights),
              dnnl_arg(DNNL_ARG_DIFF_SRC, conv.image.own), dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad)});
  dnnl_->write_images(conv.image);
}

void CpuBackend::conv2d_backward_weights(const Conv2dArgs& args, ConstView x, ConstView dy, View dw, View db) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::backward_weights, args, static_cast<bool>(db)});
  if (conv.as_products) {
    const ConvProducts products(args);
    if (dw) products.backward_weights(x.f32(), dy.f32(), dw.f32(), scratch_floats(products.room_floats()));
    if (db) add_column_sums({dy.f32(), args.out_c}, args.batch * args.out_h() * args.out_w(), args.out_c, db.f32());
    return;
  }
  const size_t weights_bytes = round_up(conv.weights_bytes);
  const size_t bias_bytes = db ? round_up(static_cast<size_t>(args.out_c) * sizeof(float)) : 0;
  std::byte* const memory = scratch(weights_bytes + bias_bytes + conv.room_bytes());
  set_data(conv.weights, memory);
  std::byte* const room = dnnl_->read_images(conv.image, x, memory + weights_bytes + bias_bytes);
  set_data(conv.scratchpad, dnnl_->read_images(conv.result, dy, room));

  const auto image = dnnl_arg(DNNL_ARG_SRC, conv.image.own), result = dnnl_arg(DNNL_ARG_DIFF_DST, conv.result.own);
  const auto weights = dnnl_arg(DNNL_ARG_DIFF_WEIGHTS, conv.weights);
  const auto scratchpad = dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad);
  if (db) {
    set_data(conv.bias, memory + weights_bytes);
    dnnl_->run(conv.convolution, {image, result, weights, dnnl_arg(DNNL_ARG_DIFF_BIAS, conv.bias), scratchpad});
    add_chunk(reinterpret_cast<const float*>(memory + weights_bytes), args.out_c, db.f32());
  } else {
    dnnl_->run(conv.convolution, {image, result, weights, scratchpad});
  }
  if (dw) {
    set_data(conv.user_weights, dw.f32());
    dnnl_->run(conv.reorder, {dnnl_arg(DNNL_ARG_FROM, conv.weights), dnnl_arg(DNNL_ARG_TO, conv.user_weights)});
  }
}

}  // namespace dgc
