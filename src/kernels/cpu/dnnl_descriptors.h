// The descriptions of primitives, which oneDNN 2 and 3 make differently. CMake takes the functions' bodies from
// onednn_2/ or onednn_3/.
#pragma once

#include <dnnl.hpp>

namespace dgc {

constexpr auto kFloat = dnnl::memory::data_type::f32;

// Where a format is `any`, oneDNN chooses.
struct ConvShapes {
  dnnl::memory::desc image, result, weights;
  dnnl::memory::desc bias;  // empty: none
  dnnl::memory::dims stride, pad;
};

// These functions throw dnnl::error where oneDNN has no implementation.
dnnl::convolution_forward::primitive_desc describe_forward(const ConvShapes&, const dnnl::primitive_attr&,
                                                           const dnnl::engine&);
dnnl::convolution_backward_data::primitive_desc describe_backward_data(
    const ConvShapes&, const dnnl::primitive_attr&, const dnnl::engine&,
    const dnnl::convolution_forward::primitive_desc& forward);
dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
    const ConvShapes&, const dnnl::primitive_attr&, const dnnl::engine&,
    const dnnl::convolution_forward::primitive_desc& forward);

// c [rows, columns] = a [rows, inner] * b [inner, columns]
dnnl::matmul::primitive_desc describe_product(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                              const dnnl::memory::desc& c, const dnnl::primitive_attr&,
                                              const dnnl::engine&);

}  // namespace dgc
