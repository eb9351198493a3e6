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
  const dnnl::primitive_attr attributes = attributes_of(Access::write);
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

// Whether this is a weight gradient that oneDNN 2.6 cannot be trusted with. Its code for windows of 1 x 1 with a stride
// writes beyond the scratch memory that it asks for, unless the input's channels come in sixteens. Its code for bf16
// reads scratch memory that it has not written, where the input is hardly wider than a window with a stride. Products
// in the place of the latter are of fp32.
bool is_unsafe(const ConvKey& key, Type factors, const std::string& code) {
  const Conv2dArgs& a = key.args;
  if (key.pass != ConvPass::backward_weights || (a.stride_h == 1 && a.stride_w == 1)) return false;
  const bool overruns = code.find("1x1") != std::string::npos && a.in_c % 16 != 0;
  return overruns || (factors != kFloat && a.in_w < a.kernel_w + a.stride_w);
}

// Plain NHWC was measured as fast as oneDNN's blocked layouts, and needs no conversion between layers. Where oneDNN is
// slow with it and ConvProducts cannot take its place, oneDNN chooses the layout too.
PreparedConv prepare_conv(const ConvKey& key, Type factors, const dnnl::engine& engine) {
  Choice choice = choose(key, factors, memory::format_tag::nhwc, engine);
  const bool may_be_products = key.pass != ConvPass::forward && key.args.groups == 1;
  const bool is_slow = factors == kFloat && (choice.is_reference() || choice.writes_windows());
  if (may_be_products && (is_slow || is_unsafe(key, factors, choice.name))) {
    PreparedConv products;
    products.as_products = true;
    return products;
  }
  if (choice.is_reference()) choice = choose(key, factors, memory::format_tag::any, engine);

  const auto access = [&](ConvPass writes) { return key.pass == writes ? Access::write : Access::read; };
  PreparedConv made;
  made.convolution = choice.convolution;
  const memory::desc image = image_desc(key.args, kFloat, memory::format_tag::nhwc);
  const memory::desc result = result_desc(key.args, kFloat, memory::format_tag::nhwc);
  made.image = prepare_copy(image, choice.image, access(ConvPass::backward_data), engine);
  made.result = prepare_copy(result, choice.result, access(ConvPass::forward), engine);
  made.weights = prepare_copy(user_weights_desc(key.args), choice.weights,
                              key.pass == ConvPass::backward_weights ? Access::add : Access::read, engine);
  if (key.bias) made.bias = memory({{key.args.out_c}, kFloat, memory::format_tag::a}, engine, nullptr);
  made.scratchpad = memory(choice.scratchpad, engine, nullptr);
  made.scratchpad_bytes = choice.scratchpad.get_size();
  return made;
}

}  // namespace

dnnl::primitive_attr attributes_of(Access access) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (access == Access::add) {
    dnnl::post_ops add;
    add.append_sum();
    attributes.set_post_ops(add);
  }
  return attributes;
}

TensorCopy prepare_copy(const memory::desc& given, const memory::desc& own, Access access, const dnnl::engine& engine) {
  TensorCopy made{memory(given, engine, nullptr), memory(own, engine, nullptr), {}, 0};
  if (own == given && access != Access::add) return made;
  const dnnl::primitive_attr attributes = attributes_of(access);
  made.reorder = access == Access::read ? dnnl::reorder({engine, given, engine, own, attributes})
                                        : dnnl::reorder({engine, own, engine, given, attributes});
  made.bytes = round_up(own.get_size());
  return made;
}

const PreparedConv& DnnlCache::convolution(const ConvKey& key) {
  return find_or_prepare(convolutions, key, [&] { return prepare_conv(key, factors, engine); });
}

std::byte* DnnlCache::place(const TensorCopy& copy, const float* at, std::byte* room) {
  set_data(copy.given, at);
  set_data(copy.own, copy.bytes == 0 ? static_cast<const void*>(at) : room);
  return room + copy.bytes;
}

std::byte* DnnlCache::read(const TensorCopy& copy, const float* from, std::byte* room) {
  std::byte* const rest = place(copy, from, room);
  if (copy.bytes > 0) run(copy.reorder, {dnnl_arg(DNNL_ARG_FROM, copy.given), dnnl_arg(DNNL_ARG_TO, copy.own)});
  return rest;
}

void DnnlCache::write(const TensorCopy& copy) {
  if (copy.bytes > 0) run(copy.reorder, {dnnl_arg(DNNL_ARG_FROM, copy.own), dnnl_arg(DNNL_ARG_TO, copy.given)});
}

void DnnlCache::run(const dnnl::primitive& primitive, std::initializer_list<dnnl_exec_arg_t> arguments) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.begin()),
      "oneDNN could not run a primitive");
}

}  // namespace dgc
