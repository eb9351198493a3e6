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

// oneDNN's engine and everything prepared so far. Preparing takes milliseconds (code is generated), running nothing but
// the work: so a step's primitives are made once.
struct DnnlCache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<ConvKey, PreparedConv> convolutions;

  const PreparedConv& convolution(const ConvKey&);

  // As primitive.execute(), without building a map and a vector for each call.
  void run(const dnnl::primitive&, std::initializer_list<dnnl_exec_arg_t>);
};

inline dnnl_exec_arg_t dnnl_arg(int slot, const dnnl::memory& memory) { return {slot, memory.get()}; }

}  // namespace dgc
