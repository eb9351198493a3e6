#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/dnnl_descriptors.h"

namespace dgc {
namespace {

using dnnl::memory;

constexpr auto kRounded = memory::data_type::bf16;

RoundedFactor prepare_factor(const memory::dims& dims, const FactorShape& shape, const memory::desc& rounded,
                             const dnnl::engine& engine) {
  const memory::dims strides = shape.transposed ? memory::dims{1, shape.row_length} : memory::dims{shape.row_length, 1};
  const memory::desc given(dims, kFloat, strides);
  dnnl::primitive_attr copy;
  copy.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return {memory(given, engine, nullptr), memory(rounded, engine, nullptr),
          dnnl::reorder({engine, given, engine, rounded, copy}), rounded.get_size()};
}

RoundedProduct prepare_product(const RoundedProductKey& key, const dnnl::engine& engine) {
  const memory::dims a{key.m, key.k}, b{key.k, key.n};
  const memory::desc c({key.m, key.n}, kFloat, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // ours: a step must not allocate
  if (key.add) {
    dnnl::post_ops add;
    add.append_sum();
    attributes.set_post_ops(add);
  }
  const auto any = [](const memory::dims& dims) { return memory::desc(dims, kRounded, memory::format_tag::any); };
  const auto product = describe_product(any(a), any(b), c, attributes, engine);

  RoundedProduct made;
  made.product = dnnl::matmul(product);
  made.a = prepare_factor(a, key.a, product.src_desc(), engine);
  made.b = prepare_factor(b, key.b, product.weights_desc(), engine);
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
  const auto round = [&](const RoundedFactor& factor, const float* from) {
    set_data(factor.given, from);
    set_data(factor.rounded, room);
    run(factor.reorder, {dnnl_arg(DNNL_ARG_FROM, factor.given), dnnl_arg(DNNL_ARG_TO, factor.rounded)});
    room += round_up(factor.bytes);
  };
  round(product.a, a);
  round(product.b, b);
  set_data(product.c, c);
  set_data(product.scratchpad, room);
  run(product.product, {dnnl_arg(DNNL_ARG_SRC, product.a.rounded), dnnl_arg(DNNL_ARG_WEIGHTS, product.b.rounded),
                        dnnl_arg(DNNL_ARG_DST, product.c), dnnl_arg(DNNL_ARG_SCRATCHPAD, product.scratchpad)});
}

}  // namespace dgc
