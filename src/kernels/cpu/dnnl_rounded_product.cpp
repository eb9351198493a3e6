#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/dnnl_descriptors.h"

namespace dgc {
namespace {

using dnnl::memory;

constexpr auto kRounded = memory::data_type::bf16;

memory::desc factor_desc(const memory::dims& dims, const FactorShape& shape) {
  const memory::dims strides = shape.transposed ? memory::dims{1, shape.row_length} : memory::dims{shape.row_length, 1};
  return {dims, kFloat, strides};
}

RoundedProduct prepare_product(const RoundedProductKey& key, const dnnl::engine& engine) {
  const memory::dims a{key.m, key.k}, b{key.k, key.n};
  const memory::desc c({key.m, key.n}, kFloat, memory::format_tag::ab);
  const dnnl::primitive_attr attributes = attributes_of(key.add ? Access::add : Access::write);
  const auto any = [](const memory::dims& dims) { return memory::desc(dims, kRounded, memory::format_tag::any); };
  const auto product = describe_product(any(a), any(b), c, attributes, engine);

  RoundedProduct made;
  made.product = dnnl::matmul(product);
  made.a = prepare_copy(factor_desc(a, key.a), product.src_desc(), Access::read, engine);
  made.b = prepare_copy(factor_desc(b, key.b), product.weights_desc(), Access::read, engine);
  made.c = memory(c, engine, nullptr);
  made.scratchpad = memory(product.scratchpad_desc(), engine, nullptr);
  made.scratchpad_bytes = product.scratchpad_desc().get_size();
  return made;
}

}  // namespace

const RoundedProduct& DnnlCache::rounded_product(const RoundedProductKey& key) {
  return find_or_prepare(rounded_products, key, [&] { return prepare_product(key, engine); });
}

void DnnlCache::multiply_rounded(const RoundedProduct& product, const float* a, const float* b, float* c,
                                 std::byte* room) {
  set_data(product.scratchpad, read(product.b, b, read(product.a, a, room)));
  set_data(product.c, c);
  run(product.product, {dnnl_arg(DNNL_ARG_SRC, product.a.own), dnnl_arg(DNNL_ARG_WEIGHTS, product.b.own),
                        dnnl_arg(DNNL_ARG_DST, product.c), dnnl_arg(DNNL_ARG_SCRATCHPAD, product.scratchpad)});
}

}  // namespace dgc
