// oneDNN 2: an operation's description, then what the engine makes of it.
#include "kernels/cpu/dnnl_descriptors.h"

namespace dgc {
namespace {
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
}

dnnl::convolution_forward::primitive_desc describe_forward(const ConvShapes& s, const dnnl::primitive_attr& attributes,
                                                           const dnnl::engine& engine) {
  return {{dnnl::prop_kind::forward_training, kDirect, s.image, s.weights, s.bias, s.result, s.stride, s.pad, s.pad},
          attributes,
          engine};
}

dnnl::convolution_backward_data::primitive_desc describe_backward_data(
    const ConvShapes& s, const dnnl::primitive_attr& attributes, const dnnl::engine& engine,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {{kDirect, s.image, s.weights, s.result, s.stride, s.pad, s.pad}, attributes, engine, forward};
}

dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
    const ConvShapes& s, const dnnl::primitive_attr& attributes, const dnnl::engine& engine,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {{kDirect, s.image, s.weights, s.bias, s.result, s.stride, s.pad, s.pad}, attributes, engine, forward};
}

dnnl::matmul::primitive_desc describe_product(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                              const dnnl::memory::desc& c, const dnnl::primitive_attr& attributes,
                                              const dnnl::engine& engine) {
  return {{a, b, c}, attributes, engine};
}

}  // namespace dgc
