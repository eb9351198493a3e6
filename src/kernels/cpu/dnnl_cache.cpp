#include "kernels/cpu/dnnl_cache.h"

#include <string>

#include "kernels/cpu/dnnl_descriptors.h"

namespace dgc {
namespace {

using dnnl::memory;

using Type = memory::data_type;

memory::desc weights_desc(const Conv2dArgs& a, Type type, memory::format_tag format) {
  if (a.groups == 1) return {{a.out_c, a.in_c, a.kernel_h, a.kernel_w}, type, format};
  return {{a.groups, a.out_c / a.groups, a.in_c / a.groups, a.kernel_h, a.kernel_w}, type, format};
}

memory::desc user_weights_desc(const Conv2dArgs& a) {
  return weights_desc(a, kFloat, a.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
}

memory::desc image_desc(const Conv2dArgs& a, Type type, memory::format_tag format) {
  return {{a.batch, a.in_c, a.in_h, a.in_w}, type, format};
}

memory::desc result_desc(const Conv2dArgs& a, Type type, memory::format_tag format) {
  return {{a.batch, a.out_c, a.out_h(), a.out_w()}, type, format};
}

// A pass reads two of image, result and weights, as `factors`, and writes the third one in fp32.
ConvShapes shapes(const ConvKey& key, ConvPass pass, Type factors, memory::format_tag images) {
  const Conv2dArgs& a = key.args;
  const auto type = [&](ConvPass writes) { return pass == writes ? kFloat : factors; };
  ConvShapes s;
  s.image = image_desc(a, type(ConvPass::backward_data), images);
  s.result = result_desc(a, type(ConvPass::forward), images);
  if (key.bias) s.bias = {{a.out_c}, kFloat, memory::format_tag::a};
  s.weights = weights_desc(a, type(ConvPass::backward_weights), memory::format_tag::any);
  s.stride = {a.stride_h, a.stride_w};
  s.pad = {a.pad_h, a.pad_w};
  return s;
}

// What oneDNN has chosen for one pass.
struct Choice {
  dnnl::primitive convolution;
  memory::desc image, result, weights, scratchpad;
  std::string name;

  // For large windows over few images, as in speech, oneDNN has only its reference code for NHWC, which is a hundred
  // times slower than others.
  bool is_reference() const { return name.starts_with("ref"); }
  // oneDNN writes out each window and multiplies, for NHWC with a fifth of the speed of its own products.
  bool writes_windows() const { return name.find("gemm") != std::string::npos; }
};

Choice choose(const ConvKey& key, Type factors, memory::format_tag images, const dnnl::engine& engine) {
  const ConvShapes s = shapes(key, key.pass, factors, images);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // ours, shared by all: a step must not allocate
  const auto forward = describe_forward(shapes(key, ConvPass::forward, factors, images), attributes, engine);
  if (key.pass == ConvPass::forward) {
    return {dnnl::convolution_forward(forward), forward.src_desc(),     forward.dst_desc(), forward.weights_desc(),
            forward.scratchpad_desc(),          forward.impl_info_str()};
  }
  if (key.pass == ConvPass::backward_data) {
    const auto pass = describe_backward_data(s, attributes, engine, forward);
    return {dnnl::convolution_backward_data(pass),
            pass.diff_src_desc(),
            pass.diff_dst_desc(),
            pass.weights_desc(),
            pass.scratchpad_desc(),
            pass.impl_info_str()};
  }
  const auto pass = describe_backward_weights(s, attributes, engine, forward);
  return {dnnl::convolution_backward_weights(pass),
          pass.src_desc(),
          pass.diff_dst_desc(),
          pass.diff_weights_desc(),
          pass.scratchpad_desc(),
          pass.impl_info_str()};
}

enum class Access { read, write };

ConvImages images(const memory::desc& own, const memory::desc& nhwc, Access access, const dnnl::engine& engine,
                  const dnnl::primitive_attr& copy) {
  ConvImages made{memory(own, engine, nullptr), memory(nhwc, engine, nullptr), {}, 0};
  if (own == nhwc) return made;
  made.bytes = own.get_size();
  made.reorder = access == Access::read ? dnnl::reorder({engine, nhwc, engine, own, copy})
                                        : dnnl::reorder({engine, own, engine, nhwc, copy});
  return made;
}

// Plain NHWC was measured as fast as oneDNN's blocked layouts, and needs no conversion between layers. Where oneDNN is
// slow with it and ConvProducts cannot take its place, oneDNN chooses the layout too.
PreparedConv prepare_conv(const ConvKey& key, Type factors, const dnnl::engine& engine) {
  Choice choice = choose(key, factors, memory::format_tag::nhwc, engine);
  const bool may_be_products = key.pass != ConvPass::forward && key.args.groups == 1 && factors == kFloat;
  if (may_be_products && (choice.is_reference() || choice.writes_windows())) {
    PreparedConv products;
    products.as_products = true;
    return products;
  }
  if (choice.is_reference()) choice = choose(key, factors, memory::format_tag::any, engine);

  dnnl::primitive_attr copy;
  copy.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto unbound = [&](const memory::desc& desc) { return memory(desc, engine, nullptr); };
  PreparedConv made;
  made.convolution = choice.convolution;
  const memory::desc image = image_desc(key.args, kFloat, memory::format_tag::nhwc);
  const memory::desc result = result_desc(key.args, kFloat, memory::format_tag::nhwc);
  made.image =
      images(choice.image, image, key.pass == ConvPass::backward_data ? Access::write : Access::read, engine, copy);
  made.result =
      images(choice.result, result, key.pass == ConvPass::forward ? Access::write : Access::read, engine, copy);
  if (key.bias) made.bias = unbound({{key.args.out_c}, kFloat, memory::format_tag::a});
  const memory::desc user_weights = user_weights_desc(key.args);
  made.user_weights = unbound(user_weights);
  made.weights = unbound(choice.weights);
  made.scratchpad = unbound(choice.scratchpad);
  made.weights_bytes = choice.weights.get_size();
  made.scratchpad_bytes = choice.scratchpad.get_size();

  if (key.pass == ConvPass::backward_weights) {
    dnnl::post_ops add;
    add.append_sum();
    copy.set_post_ops(add);
    made.reordered = true;
    made.reorder = dnnl::reorder({engine, choice.weights, engine, user_weights, copy});
  } else if (choice.weights != user_weights) {
    made.reordered = true;
    made.reorder = dnnl::reorder({engine, user_weights, engine, choice.weights, copy});
  }
  return made;
}

}  // namespace

const PreparedConv& DnnlCache::convolution(const ConvKey& key) {
  return find_or_prepare(convolutions, key, [&] { return prepare_conv(key, factors, engine); });
}

std::byte* DnnlCache::place_images(const ConvImages& images, ConstView at, std::byte* room) {
  set_data(images.nhwc, at.f32());
  set_data(images.own, images.bytes == 0 ? static_cast<const void*>(at.f32()) : room);
  return room + round_up(images.bytes);
}

std::byte* DnnlCache::read_images(const ConvImages& images, ConstView x, std::byte* room) {
  std::byte* const rest = place_images(images, x, room);
  if (images.bytes > 0) run(images.reorder, {dnnl_arg(DNNL_ARG_FROM, images.nhwc), dnnl_arg(DNNL_ARG_TO, images.own)});
  return rest;
}

void DnnlCache::write_images(const ConvImages& images) {
  if (images.bytes == 0) return;
  run(images.reorder, {dnnl_arg(DNNL_ARG_FROM, images.own), dnnl_arg(DNNL_ARG_TO, images.nhwc)});
}

const float* DnnlCache::load_weights(const WeightsCopy& copy, const float* w, float* memory) {
  if (!copy.reordered) return w;
  set_data(copy.user_weights, w);
  set_data(copy.weights, memory);
  run(copy.reorder, {dnnl_arg(DNNL_ARG_FROM, copy.user_weights), dnnl_arg(DNNL_ARG_TO, copy.weights)});
  return memory;
}

void DnnlCache::run(const dnnl::primitive& primitive, std::initializer_list<dnnl_exec_arg_t> arguments) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.begin()),
      "oneDNN could not run a primitive");
}

}  // namespace dgc
