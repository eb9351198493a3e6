// Convolutions by oneDNN. Weights change every step, so each call copies the weights into the layout that the primitive
// prefers. Weights are small next to the images, and the copy lies in the shared scratch memory, where the primitive
// finds it in the cache.
#include "kernels/cpu/conv2d_products.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/product.h"

namespace dgc {

void CpuBackend::conv2d_forward(const Conv2dArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::forward, args, static_cast<bool>(b)});
  std::byte* room = dnnl_->read(conv.weights, w.f32(), scratch(conv.room_bytes()));
  room = dnnl_->read(conv.image, x.f32(), room);
  set_data(conv.scratchpad, dnnl_->place(conv.result, y.f32(), room));
  const auto image = dnnl_arg(DNNL_ARG_SRC, conv.image.own), weights = dnnl_arg(DNNL_ARG_WEIGHTS, conv.weights.own);
  const auto result = dnnl_arg(DNNL_ARG_DST, conv.result.own);
  const auto scratchpad = dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad);
  if (b) {
    set_data(conv.bias, b.f32());
    dnnl_->run(conv.convolution, {image, weights, dnnl_arg(DNNL_ARG_BIAS, conv.bias), result, scratchpad});
  } else {
    dnnl_->run(conv.convolution, {image, weights, result, scratchpad});
  }
  dnnl_->write(conv.result);
}

void CpuBackend::conv2d_backward_data(const Conv2dArgs& args, ConstView dy, ConstView w, View dx) {
  const PreparedConv& conv = dnnl_->convolution({ConvPass::backward_data, args});
  if (conv.as_products) {
    const ConvProducts products(args);
    return products.backward_data(dy.f32(), w.f32(), dx.f32(), scratch_floats(products.room_floats()));
  }
  std::byte* room = dnnl_->read(conv.weights, w.f32(), scratch(conv.room_bytes()));
  room = dnnl_->read(conv.result, dy.f32(), room);
  set_data(conv.scratchpad, dnnl_->place(conv.image, dx.f32(), room));
  dnnl_->run(conv.convolution,
             {dnnl_arg(DNNL_ARG_DIFF_DST, conv.result.own), dnnl_arg(DNNL_ARG_WEIGHTS, conv.weights.own),
              dnnl_arg(DNNL_ARG_DIFF_SRC, conv.image.own), dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad)});
  dnnl_->write(conv.image);
}

void CpuBackend::conv2d_backward_weights(const Conv2dArgs& args, ConstView x, ConstView dy, View dw, View db) {
  // With bf16 the primitive reads rounded gradients, but that of the bias is no product.
  const bool with_bias = db && math_ != Fp32Math::bf16;
  const PreparedConv& conv = dnnl_->convolution({ConvPass::backward_weights, args, with_bias});
  if (db && (conv.as_products || !with_bias)) {
    add_column_sums({dy.f32(), args.out_c}, args.batch * args.out_h() * args.out_w(), args.out_c, db.f32());
  }
  if (conv.as_products) {
    const ConvProducts products(args);
    return products.backward_weights(x.f32(), dy.f32(), dw.f32(), scratch_floats(products.room_floats()));
  }
  const size_t bias_bytes = with_bias ? round_up(float_bytes(args.out_c)) : 0;
  std::byte* const bias = scratch(bias_bytes + conv.room_bytes());
  std::byte* room = dnnl_->place(conv.weights, dw.f32(), bias + bias_bytes);
  room = dnnl_->read(conv.image, x.f32(), room);
  set_data(conv.scratchpad, dnnl_->read(conv.result, dy.f32(), room));

  const auto image = dnnl_arg(DNNL_ARG_SRC, conv.image.own), result = dnnl_arg(DNNL_ARG_DIFF_DST, conv.result.own);
  const auto weights = dnnl_arg(DNNL_ARG_DIFF_WEIGHTS, conv.weights.own);
  const auto scratchpad = dnnl_arg(DNNL_ARG_SCRATCHPAD, conv.scratchpad);
  if (with_bias) {
    set_data(conv.bias, bias);
    dnnl_->run(conv.convolution, {image, result, weights, dnnl_arg(DNNL_ARG_DIFF_BIAS, conv.bias), scratchpad});
    add_chunk(reinterpret_cast<const float*>(bias), args.out_c, db.f32());
  } else {
    dnnl_->run(conv.convolution, {image, result, weights, scratchpad});
  }
  dnnl_->write(conv.weights);
}

}  // namespace dgc
