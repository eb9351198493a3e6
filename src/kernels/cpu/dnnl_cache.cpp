#include "kernels/cpu/dnnl_cache.h"

namespace dgc {
namespace {

using dnnl::memory;
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

struct ConvShapes {
  memory::desc image, result, bias, user_weights, any_weights;
  memory::dims stride, pad;
};

ConvShapes shapes(const ConvKey& key) {
  const Conv2dArgs& a = key.args;
  // Images in plain NHWC measured as good as oneDNN's blocked layouts, and spare every conversion between layers.
  ConvShapes s;
  s.image = {{a.batch, a.in_c, a.in_h, a.in_w}, kFloat, memory::format_tag::nhwc};
  s.result = {{a.batch, a.out_c, a.out_h(), a.out_w()}, kFloat, memory::format_tag::nhwc};
  if (key.bias) s.bias = {{a.out_c}, kFloat, memory::format_tag::a};
  const memory::dims grouped = {a.groups, a.out_c / a.groups, a.in_c / a.groups, a.kernel_h, a.kernel_w};
  const memory::dims plain = {a.out_c, a.in_c, a.kernel_h, a.kernel_w};
  const auto& dims = a.groups > 1 ? grouped : plain;
  s.user_weights = {dims, kFloat, a.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw};
  s.any_weights = {dims, kFloat, memory::format_tag::any};
  s.stride = {a.stride_h, a.stride_w};
  s.pad = {a.pad_h, a.pad_w};
  return s;
}

PreparedConv prepare(const ConvKey& key, const dnnl::engine& engine) {
  using dnnl::prop_kind;
  const ConvShapes s = shapes(key);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // ours, shared by all: a step must not allocate

  const dnnl::convolution_forward::primitive_desc forward(
      {prop_kind::forward_training, kDirect, s.image, s.any_weights, s.bias, s.result, s.stride, s.pad, s.pad},
      attributes, engine);
  PreparedConv made;
  memory::desc weights, scratchpad;
  switch (key.pass) {
    case ConvPass::forward: {
      made.convolution = dnnl::convolution_forward(forward);
      weights = forward.weights_desc();
      scratchpad = forward.scratchpad_desc();
      break;
    }
    case ConvPass::backward_data: {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {kDirect, s.image, s.any_weights, s.result, s.stride, s.pad, s.pad}, attributes, engine, forward);
      made.convolution = dnnl::convolution_backward_data(backward);
      weights = backward.weights_desc();
      scratchpad = backward.scratchpad_desc();
      break;
    }
    case ConvPass::backward_weights: {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {kDirect, s.image, s.any_weights, s.bias, s.result, s.stride, s.pad, s.pad}, attributes, engine, forward);
      made.convolution = dnnl::convolution_backward_weights(backward);
      weights = backward.diff_weights_desc();
      scratchpad = backward.scratchpad_desc();
      break;
    }
  }

  const auto unbound = [&](const memory::desc& desc) { return memory(desc, engine, nullptr); };
  made.image = unbound(s.image);
  made.result = unbound(s.result);
  if (key.bias) made.bias = unbound(s.bias);
  made.user_weights = unbound(s.user_weights);
  made.weights = unbound(weights);
  made.scratchpad = unbound(scratchpad);
  made.weights_bytes = weights.get_size();
  made.scratchpad_bytes = scratchpad.get_size();

  dnnl::primitive_attr copy;
  copy.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.pass == ConvPass::backward_weights) {
    dnnl::post_ops add;
    add.append_sum();
    copy.set_post_ops(add);
    made.reordered = true;
    made.reorder = dnnl::reorder({engine, weights, engine, s.user_weights, copy});
  } else if (weights != s.user_weights) {
    made.reordered = true;
    made.reorder = dnnl::reorder({engine, s.user_weights, engine, weights, copy});
  }
  return made;
}

}  // namespace

const PreparedConv& DnnlCache::convolution(const ConvKey& key) {
  const auto found = convolutions.find(key);
  if (found != convolutions.end()) return found->second;
  return convolutions.emplace(key, prepare(key, engine)).first->second;
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
