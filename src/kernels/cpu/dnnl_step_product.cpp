#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/dnnl_descriptors.h"

namespace dgc {
namespace {

using dnnl::memory;

StepProduct prepare_product(const StepProductKey& key, const dnnl::engine& engine) {
  const memory::desc a({key.rows, key.inner}, kFloat, memory::format_tag::ab);
  const memory::desc c({key.rows, key.columns}, kFloat, memory::format_tag::ab);
  const memory::desc user_weights({key.inner, key.columns}, kFloat, memory::format_tag::ba);
  const memory::desc any_weights({key.inner, key.columns}, kFloat, memory::format_tag::any);
  const auto product = describe_product(a, any_weights, c, attributes_of(Access::add), engine);

  StepProduct made;
  made.product = dnnl::matmul(product);
  const auto unbound = [&](const memory::desc& desc) { return memory(desc, engine, nullptr); };
  made.a = unbound(a);
  made.c = unbound(c);
  made.weights = prepare_copy(user_weights, product.weights_desc(), Access::read, engine);
  made.scratchpad = unbound(product.scratchpad_desc());
  made.scratchpad_bytes = product.scratchpad_desc().get_size();
  return made;
}

}  // namespace

const StepProduct& DnnlCache::step_product(const StepProductKey& key) {
  return find_or_prepare(step_products, key, [&] { return prepare_product(key, engine); });
}

void DnnlCache::add_step_product(const StepProduct& step, const float* a, float* c, std::byte* room) {
  set_data(step.a, a);
  set_data(step.c, c);
  set_data(step.scratchpad, room);
  run(step.product, {dnnl_arg(DNNL_ARG_SRC, step.a), dnnl_arg(DNNL_ARG_WEIGHTS, step.weights.own),
                     dnnl_arg(DNNL_ARG_DST, step.c), dnnl_arg(DNNL_ARG_SCRATCHPAD, step.scratchpad)});
}

}  // namespace dgc
