#pragma once

#include <compare>
#include <dnnl.hpp>
#include <initializer_list>
#include <map>

#include "kernels/backend.h"

namespace dgc {

enum class ConvPass { forward, backward_data, backward_weights };

struct ConvKey {
  ConvPass pass;
  Conv2dArgs args;
  bool bias = false;
  auto operator<=>(const ConvKey&) const = default;
};

// One prepared pass of one convolution: the primitive, descriptions of its memory (the addresses are set per call), and
// the copy between PyTorch's weight layout and the one the primitive prefers. For backward_weights that copy ADDS.
struct PreparedConv {
  dnnl::primitive convolution;
  dnnl::reorder reorder;
  dnnl::memory image, result, bias, scratchpad;  // image: x or dx; result: y or dy
  dnnl::memory user_weights, weights;
  bool reordered = false;  // false: the primitive reads PyTorch's layout itself
  size_t weights_bytes = 0, scratchpad_bytes = 0;
};

struct StepProductKey {
  int64_t rows = 0, columns = 0, inner = 0;
  auto operator<=>(const StepProductKey&) const = default;
};

// c [rows, columns] += a [rows, inner] * w^T, w [columns, inner], for few rows and many products with the same w: it is
// copied into the primitive's own layout once. sgemm would pack it anew for each product, which for few rows takes
// twice as long as the product itself.
struct StepProduct {
  dnnl::matmul product;
  dnnl::reorder reorder;
  dnnl::memory a, c, user_weights, weights, scratchpad;
  bool reordered = false;  // false: the primitive reads PyTorch's layout itself
  int64_t weights_floats = 0, scratchpad_floats = 0;
};

// oneDNN's engine and everything prepared so far. Preparing takes milliseconds (code is generated), running nothing but
// the work: so a step's primitives are made once.
struct DnnlCache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<ConvKey, PreparedConv> convolutions;
  std::map<StepProductKey, StepProduct> step_products;

  const PreparedConv& convolution(const ConvKey&);
  const StepProduct& step_product(const StepProductKey&);

  // Returns the weights for add_step_product(): in `memory` of weights_floats, or where they are.
  const float* load_weights(const StepProduct&, const float* w, float* memory);
  // room: memory of scratchpad_floats.
  void add_step_product(const StepProduct&, const float* a, const float* weights, float* c, float* room);

  // As primitive.execute(), without building a map and a vector for each call.
  void run(const dnnl::primitive&, std::initializer_list<dnnl_exec_arg_t>);
};

inline dnnl_exec_arg_t dnnl_arg(int slot, const dnnl::memory& memory) { return {slot, memory.get()}; }

}  // namespace dgc
