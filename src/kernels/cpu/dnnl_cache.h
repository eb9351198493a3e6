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

// The copy between PyTorch's weight layout and the one that a primitive prefers.
struct WeightsCopy {
  dnnl::reorder reorder;
  dnnl::memory user_weights, weights;
  bool reordered = false;  // false: the primitive reads PyTorch's layout itself
};

// One prepared pass of one convolution: the primitive, descriptions of its memory (the addresses are set per call), and
// the copy of its weights. For backward_weights that copy goes the other way and ADDS.
struct PreparedConv : WeightsCopy {
  dnnl::primitive convolution;
  dnnl::memory image, result, bias, scratchpad;  // image: x or dx; result: y or dy
  size_t weights_bytes = 0, scratchpad_bytes = 0;
};

struct StepProductKey {
  int64_t rows = 0, columns = 0, inner = 0;
  auto operator<=>(const StepProductKey&) const = default;
};

// c [rows, columns] += a [rows, inner] * w^T, w [columns, inner], for few rows and many products with the same w: it is
// copied into the primitive's own layout once. sgemm would pack it anew for each product, which for few rows takes
// twice as long as the product itself.
struct StepProduct : WeightsCopy {
  dnnl::matmul product;
  dnnl::memory a, c, scratchpad;
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

  // Returns the weights as the primitive reads them: copied into `memory`, or where they are.
  const float* load_weights(const WeightsCopy&, const float* w, float* memory);
  // weights: of load_weights, with memory of weights_floats. room: memory of scratchpad_floats.
  void add_step_product(const StepProduct&, const float* a, const float* weights, float* c, float* room);

  // As primitive.execute(), without building a map and a vector for each call.
  void run(const dnnl::primitive&, std::initializer_list<dnnl_exec_arg_t>);
};

// oneDNN's memory is never const, but it only reads its inputs.
inline void set_data(const dnnl::memory& memory, const void* data) { memory.set_data_handle(const_cast<void*>(data)); }

inline dnnl_exec_arg_t dnnl_arg(int slot, const dnnl::memory& memory) { return {slot, memory.get()}; }

}  // namespace dgc
