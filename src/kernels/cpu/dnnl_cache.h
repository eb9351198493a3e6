#pragma once

#include <compare>
#include <dnnl.hpp>
#include <initializer_list>
#include <map>

#include "kernels/backend.h"
#include "kernels/cpu/product.h"

namespace dgc {

constexpr size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

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

// Images as a convolution takes them, and the copy between that layout and type and NHWC in fp32 where they differ.
struct ConvImages {
  dnnl::memory own;
  dnnl::memory nhwc;
  dnnl::reorder reorder;  // to `own` where the primitive reads it, from `own` where it writes
  size_t bytes = 0;       // size of the copy; 0: `own` is NHWC, and there is no copy
};

// One prepared pass of one convolution: the primitive, descriptions of its memory (each call sets the addresses), and
// the copies of its weights and images. For backward_weights the copy of the weights goes the other way and ADDS.
struct PreparedConv : WeightsCopy {
  dnnl::primitive convolution;
  ConvImages image, result;  // image: x or dx; result: y or dy
  dnnl::memory bias, scratchpad;
  size_t weights_bytes = 0, scratchpad_bytes = 0;
  bool as_products = false;  // oneDNN has no code of its own for it, and nothing else here is set: see ConvProducts

  size_t room_bytes() const { return round_up(image.bytes) + round_up(result.bytes) + scratchpad_bytes; }
};

struct StepProductKey {
  int64_t rows = 0, columns = 0, inner = 0;
  auto operator<=>(const StepProductKey&) const = default;
};

// How a factor of a product lies in memory; see Factor in product.h.
struct FactorShape {
  explicit FactorShape(const Factor& f) : row_length(f.row_length), transposed(f.transposed != 'N') {}
  int64_t row_length;
  bool transposed;
  auto operator<=>(const FactorShape&) const = default;
};

struct RoundedProductKey {
  int64_t m, n, k;
  FactorShape a, b;
  bool add;
  auto operator<=>(const RoundedProductKey&) const = default;
};

// A factor as it lies, and its copy in 16 bits and in the layout that the product prefers.
struct RoundedFactor {
  dnnl::memory given, rounded;
  dnnl::reorder reorder;
  size_t bytes = 0;  // of the copy
};

// c [m, n] = a [m, k] * b [k, n], or c += a * b, with factors rounded to bf16 and sums in fp32.
struct RoundedProduct {
  dnnl::matmul product;
  RoundedFactor a, b;
  dnnl::memory c, scratchpad;
  size_t scratchpad_bytes = 0;

  size_t room_bytes() const { return round_up(a.bytes) + round_up(b.bytes) + scratchpad_bytes; }
};

// c [rows, columns] += a [rows, inner] * w^T with w [columns, inner], for few rows and many products with the same w.
// The weights are copied into the primitive's own layout once. sgemm would pack them for each product, which for few
// rows takes twice as long as the product itself.
struct StepProduct : WeightsCopy {
  dnnl::matmul product;
  dnnl::memory a, c, scratchpad;
  int64_t weights_floats = 0, scratchpad_floats = 0;
};

// What has been prepared for `key`; calls `prepare` at the first use.
template <typename Key, typename Prepared, typename Prepare>
const Prepared& find_or_prepare(std::map<Key, Prepared>& all, const Key& key, const Prepare& prepare) {
  const auto found = all.find(key);
  return found != all.end() ? found->second : all.emplace(key, prepare()).first->second;
}

// oneDNN's engine and all primitives that have been prepared. A primitive is prepared once, at its first use, because
// that takes milliseconds: oneDNN generates code.
struct DnnlCache {
  explicit DnnlCache(Fp32Math math)
      : factors(math == Fp32Math::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32) {}

  dnnl::memory::data_type factors;  // what convolutions read; they write fp32
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<ConvKey, PreparedConv> convolutions;
  std::map<RoundedProductKey, RoundedProduct> rounded_products;
  std::map<StepProductKey, StepProduct> step_products;

  const PreparedConv& convolution(const ConvKey&);
  const RoundedProduct& rounded_product(const RoundedProductKey&);
  const StepProduct& step_product(const StepProductKey&);

  // Tells the primitive where its images lie: at `at`, or, where they need a copy, at the start of `room`. Returns the
  // rest of `room`.
  std::byte* place_images(const ConvImages&, ConstView at, std::byte* room);
  std::byte* read_images(const ConvImages&, ConstView, std::byte* room);  // place_images(), then copies into them
  void write_images(const ConvImages&);  // copies out; call it after place_images() and the primitive

  void multiply_rounded(const RoundedProduct&, const float* a, const float* b, float* c, std::byte* room);

  // Returns the weights in the layout that the primitive reads: w itself, or a copy in `memory`.
  const float* load_weights(const WeightsCopy&, const float* w, float* memory);
  // `weights` comes from load_weights(), whose memory has weights_floats floats. `room` has scratchpad_floats floats.
  void add_step_product(const StepProduct&, const float* a, const float* weights, float* c, float* room);

  // Does what primitive.execute() does, without making a map and a vector in each call.
  void run(const dnnl::primitive&, std::initializer_list<dnnl_exec_arg_t>);
};

// oneDNN's memory is never const, but it only reads its inputs.
inline void set_data(const dnnl::memory& memory, const void* data) { memory.set_data_handle(const_cast<void*>(data)); }

inline dnnl_exec_arg_t dnnl_arg(int slot, const dnnl::memory& memory) { return {slot, memory.get()}; }

}  // namespace dgc
