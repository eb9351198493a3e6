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

// A tensor as it lies in fp32, the same in the layout and type that a primitive wants, and the copy between them where
// they differ. Each call sets the addresses.
struct TensorCopy {
  dnnl::memory given, own;
  dnnl::reorder reorder;  // to `own` where the primitive reads it, from `own` where it writes
  size_t bytes = 0;       // of the copy, rounded up; 0: the primitive takes the tensor as it lies
};

enum class Access { read, write, add };  // what a primitive does; add: the copy adds what the primitive has written
// Scratch memory is ours, shared by all primitives: a step must not allocate. add: the result is added to.
dnnl::primitive_attr attributes_of(Access);
TensorCopy prepare_copy(const dnnl::memory::desc& given, const dnnl::memory::desc& own, Access, const dnnl::engine&);

// One prepared pass of one convolution: the primitive, and descriptions of its memory.
struct PreparedConv {
  dnnl::primitive convolution;
  TensorCopy image, result, weights;  // image: x or dx; result: y or dy; weights: w, or dw, which is added to
  dnnl::memory bias, scratchpad;
  size_t scratchpad_bytes = 0;
  // oneDNN's code is slow or cannot be trusted for it; then nothing else here is set, and ConvProducts take its place.
  bool as_products = false;

  size_t room_bytes() const { return image.bytes + result.bytes + weights.bytes + scratchpad_bytes; }
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

// c [m, n] = a [m, k] * b [k, n], or c += a * b, with factors rounded to bf16 and sums in fp32.
struct RoundedProduct {
  dnnl::matmul product;
  TensorCopy a, b;
  dnnl::memory c, scratchpad;
  size_t scratchpad_bytes = 0;

  size_t room_bytes() const { return a.bytes + b.bytes + scratchpad_bytes; }
};

// c [rows, columns] += a [rows, inner] * w^T with w [columns, inner], for few rows and many products with the same w.
// The weights are copied into the primitive's own layout once. sgemm would pack them for each product, which for few
// rows takes twice as long as the product itself.
struct StepProduct {
  dnnl::matmul product;
  TensorCopy weights;
  dnnl::memory a, c, scratchpad;
  size_t scratchpad_bytes = 0;
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

  // Tells the primitive where a tensor lies: at `at`, or, where it needs a copy, at the start of `room`. Returns the
  // rest of `room`.
  std::byte* place(const TensorCopy&, const float* at, std::byte* room);
  std::byte* read(const TensorCopy&, const float* from, std::byte* room);  // place(), then copies into the room
  void write(const TensorCopy&);  // copies out; call it after place() and the primitive

  void multiply_rounded(const RoundedProduct&, const float* a, const float* b, float* c, std::byte* room);

  // The weights have been read() before. `room` has scratchpad_bytes bytes.
  void add_step_product(const StepProduct&, const float* a, float* c, std::byte* room);

  // Does what primitive.execute() does, without making a map and a vector in each call.
  void run(const dnnl::primitive&, std::initializer_list<dnnl_exec_arg_t>);
};

// oneDNN's memory is never const, but it only reads its inputs.
inline void set_data(const dnnl::memory& memory, const void* data) { memory.set_data_handle(const_cast<void*>(data)); }

inline dnnl_exec_arg_t dnnl_arg(int slot, const dnnl::memory& memory) { return {slot, memory.get()}; }

}  // namespace dgc
