#include "kernels/cuda/conv_cache.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/libraries.h"
#include "tensor/errors.h"

namespace dgc::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{1} << 30;
constexpr const char* kAnew = "make the file anew with dgc bench convolutions";

// cuDNN has not executed a plan, because it cannot or because the GPU has failed.
struct PlanRefused : LibraryError {
  using LibraryError::LibraryError;
};

// The names of the tensors in a graph.
enum TensorId : int64_t { kX = 1, kFilter, kY, kBias, kSums };

// Names of attributes that differ from pass to pass.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};

PassNames names_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvPass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  throw InternalError("an unknown pass of a convolution");
}

// A tensor whose channels lie closest together. cuDNN's order of the sizes is n, c, h, w in any layout. A virtual one
// has no memory.
std::optional<GraphDescriptor> tensor(TensorId id, DType type, int64_t n, int64_t c, int64_t h, int64_t w,
                                      bool is_virtual = false) {
  GraphDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id));
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, dnn_type(type));
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  made.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, c, h, w});
  made.set_all(CUDNN_ATTR_TENSOR_STRIDES, {h * w * c, 1, w * c, c});
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  if (!made.finalize()) return std::nullopt;
  return made;
}

std::optional<GraphDescriptor> convolution(const Conv2dArgs& a) {
  GraphDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  made.set_all(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
  made.set_all(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {a.stride_h, a.stride_w});
  made.set_all(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {a.pad_h, a.pad_w});
  made.set_all(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {a.pad_h, a.pad_w});
  if (!made.finalize()) return std::nullopt;
  return made;
}

// y = sums + bias
std::optional<GraphDescriptor> addition(const GraphDescriptor& sums, const GraphDescriptor& bias,
                                        const GraphDescriptor& y) {
  GraphDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  add.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (!add.finalize()) return std::nullopt;
  GraphDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sums);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (!made.finalize()) return std::nullopt;
  return made;
}

bool has_bias(const PlannedConv& key) { return key.pass == ConvPass::forward && key.adds; }

// A graph of the pass and, if there is a bias, of an addition behind it, of sums that stay in registers. cuDNN reads
// the number of groups off the channels of x and of the filter.
std::optional<GraphDescriptor> make_graph(const PlannedConv& key) {
  const Conv2dArgs& a = key.args;
  const auto x = tensor(kX, key.type, a.batch, a.in_c, a.in_h, a.in_w);
  const auto filter = tensor(kFilter, key.type, a.out_c, a.in_c / a.groups, a.kernel_h, a.kernel_w);
  const auto y = tensor(kY, key.type, a.batch, a.out_c, a.out_h(), a.out_w());
  const auto sums = tensor(kSums, DType::f32, a.batch, a.out_c, a.out_h(), a.out_w(), true);
  const auto bias = tensor(kBias, key.type, 1, a.out_c, 1, 1);
  const auto conv = convolution(a);
  if (!x || !filter || !y || !sums || !bias || !conv) return std::nullopt;

  const PassNames names = names_of(key.pass);
  std::vector<GraphDescriptor> operations;
  GraphDescriptor& pass = operations.emplace_back(names.operation);
  pass.set(names.x, *x);
  pass.set(names.filter, *filter);
  pass.set(names.y, has_bias(key) ? *sums : *y);
  pass.set(names.convolution, *conv);
  pass.set(names.alpha, 1.0f);
  pass.set(names.beta, key.pass == ConvPass::backward_data && key.adds ? 1.0f : 0.0f);
  if (!pass.finalize()) return std::nullopt;
  if (has_bias(key)) {
    std::optional<GraphDescriptor> add = addition(*sums, *bias, *y);
    if (!add) return std::nullopt;
    operations.push_back(std::move(*add));
  }

  GraphDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (!graph.finalize()) return std::nullopt;
  return graph;
}

// Whether the engine of a configuration gives the same bits every time and rounds no more than it may. `exact` fp32
// has no tensor cores, which round factors to TF32.
bool is_good(const GraphDescriptor& config, bool exact) {
  const auto engines = config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  return std::ranges::none_of(engines.at(0).notes(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE), [&](auto note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (exact && note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  });
}

// cuDNN's list of configurations, the fastest first as its rules see it.
std::vector<GraphDescriptor> configurations(const GraphDescriptor& device, const GraphDescriptor& graph,
                                            cudnnBackendHeurMode_t mode) {
  GraphDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  if (!heuristics.finalize()) return {};
  return heuristics.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

ConvPlan::ConvPlan(GraphDescriptor plan, GraphDescriptor config, std::shared_ptr<const GraphDescriptor> graph,
                   bool bias)
    : graph_(std::move(graph)),
      config_(std::move(config)),
      plan_(std::move(plan)),
      workspace_bytes_(static_cast<size_t>(plan_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))),
      bias_(bias) {}

void ConvPlan::for_each(const GraphDescriptor& device, const PlannedConv& key, Fp32Math math,
                        const std::function<bool(std::unique_ptr<ConvPlan>)>& take) {
  std::optional<GraphDescriptor> made = make_graph(key);
  if (!made) return;
  const auto graph = std::make_shared<const GraphDescriptor>(std::move(*made));
  const bool exact = key.type == DType::f32 && math == Fp32Math::exact;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (GraphDescriptor& config : configurations(device, *graph, mode)) {
      if (!is_good(config, exact)) continue;
      GraphDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
      if (!plan.finalize()) continue;
      if (plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) > kMostWorkspace) continue;
      const auto owned = new ConvPlan(std::move(plan), std::move(config), graph, has_bias(key));
      if (take(std::unique_ptr<ConvPlan>(owned))) return;
    }
  }
}

std::unique_ptr<ConvPlan> ConvPlan::first(const GraphDescriptor& device, const PlannedConv& key, Fp32Math math,
                                          size_t passed_over) {
  std::unique_ptr<ConvPlan> found;
  for_each(device, key, math, [&](std::unique_ptr<ConvPlan> plan) {
    if (passed_over > 0) {
      --passed_over;
      return false;
    }
    found = std::move(plan);
    return true;
  });
  return found;
}

void ConvPlan::run(cudnnHandle_t dnn, const Memory& memory) const {
  const std::array<int64_t, 4> ids{kX, kFilter, kY, kBias};
  const std::array<void*, 4> data{const_cast<void*>(memory.x), const_cast<void*>(memory.filter),
                                  const_cast<void*>(memory.y), const_cast<void*>(memory.bias)};
  const size_t count = bias_ ? 4 : 3;
  GraphDescriptor pointers(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pointers.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(ids).first(count));
  pointers.set_all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span(data).first(count));
  pointers.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, memory.workspace);
  DGC_CHECK(pointers.finalize(), "cuDNN refuses the memory of a convolution");
  const cudnnStatus_t answer = cudnnBackendExecute(dnn, plan_.handle(), pointers.handle());
  try {
    check(answer, "cudnnBackendExecute");
  } catch (const LibraryError& error) {
    // Another plan would hide that there is no memory left, and have other bits than the same run elsewhere.
    if (answer == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) throw;
    throw PlanRefused(error.what());
  }
}

std::string ConvPlan::name() const {
  const auto engines = config_.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::map<int, int64_t> settings;
  for (const GraphDescriptor& choice :
       config_.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)) {
    settings[choice.knob(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)] = choice.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  }
  std::string name = fmt::format("engine {}", engines.at(0).number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  for (const char* between = ", "; const auto& [knob, value] : settings) {
    name += fmt::format("{}{}={}", std::exchange(between, " "), knob, value);
  }
  return name;
}

ConvCache::ConvCache(Fp32Math math, std::shared_ptr<const ConvPlans> plans, const CudaDevice& device)
    : math_(math), chosen_(std::move(plans)) {
  if (chosen_ == nullptr) return;
  const std::string gpu = device.model();
  if (chosen_->gpu == gpu && chosen_->cudnn == cudnn_version()) return;
  throw_user_error("{}: the plans are for {} with cuDNN {}, and this is {} with cuDNN {}; {}", chosen_->origin,
                   chosen_->gpu, chosen_->cudnn, gpu, cudnn_version(), kAnew);
}

bool ConvCache::run(cudnnHandle_t dnn, const CudaDevice& device, const PlannedConv& key,
                    const std::function<void(const ConvPlan&)>& queue) {
  Found& found = find(dnn, key);
  while (found.plan != nullptr) {
    try {
      queue(*found.plan);
      found.has_run = true;
      return true;
    } catch (const PlanRefused&) {
      // A stream of a GPU that has failed cannot be waited for, nor can one that is recorded.
      const bool is_plans_fault = !found.has_run && cudaStreamSynchronize(device.stream()) == cudaSuccess;
      if (!is_plans_fault || name_of_chosen(key) != nullptr) throw;
    }
    found.plan = make(key, ++found.passed_over);
  }
  return false;
}

ConvCache::Found& ConvCache::find(cudnnHandle_t dnn, const PlannedConv& key) {
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;
  if (!device_) device_ = device_properties(dnn);
  return plans_.emplace(key, Found{make(key, 0)}).first->second;
}

const std::string* ConvCache::name_of_chosen(const PlannedConv& key) const {
  if (chosen_ == nullptr) return nullptr;
  const auto chosen = chosen_->plans.find(text_of(key));
  return chosen != chosen_->plans.end() ? &chosen->second : nullptr;
}

std::unique_ptr<ConvPlan> ConvCache::make(const PlannedConv& key, size_t passed_over) const {
  const std::string* const chosen = name_of_chosen(key);
  if (chosen == nullptr) return ConvPlan::first(*device_, key, math_, passed_over);
  std::unique_ptr<ConvPlan> found;
  ConvPlan::for_each(*device_, key, math_, [&](std::unique_ptr<ConvPlan> plan) {
    if (plan->name() == *chosen) found = std::move(plan);
    return found != nullptr;
  });
  if (found != nullptr) return found;
  throw_user_error("{}: cuDNN has no plan \"{}\" for the convolution \"{}\"; {}", chosen_->origin, *chosen,
                   text_of(key), kAnew);
}

}  // namespace dgc::cuda
