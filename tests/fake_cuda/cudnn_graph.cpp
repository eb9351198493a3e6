// cuDNN's graph API: descriptors with attributes. A finalized descriptor does not change, and one that was made of
// others outlives them.
#include "tests/fake_cuda/dnn_graph.h"

namespace dgc::fake_cuda {
namespace {

std::map<const void*, std::shared_ptr<GraphObject>> objects;  // by the handle, which is the object's address

const std::shared_ptr<GraphObject>& object_of(cudnnBackendDescriptor_t handle) {
  const auto found = objects.find(handle);
  if (found == objects.end()) refuse(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  return found->second;
}

const GraphObject& finalized(cudnnBackendDescriptor_t handle, cudnnBackendDescriptorType_t type) {
  const GraphObject& object = *object_of(handle);
  if (object.type != type) refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor of another type");
  if (!object.finalized) refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is not finalized");
  return object;
}

template <typename T>
std::vector<T> copied(const void* values, int64_t count) {
  return std::vector<T>(static_cast<const T*>(values), static_cast<const T*>(values) + count);
}

GraphAttribute read_attribute(cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  GraphAttribute read{.type = type};
  switch (type) {
    case CUDNN_TYPE_INT64:
      read.numbers = copied<int64_t>(values, count);
      break;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
      for (const int number : copied<int>(values, count)) read.numbers.push_back(number);
      break;
    case CUDNN_TYPE_BOOLEAN:
      for (const bool flag : copied<bool>(values, count)) read.numbers.push_back(flag ? 1 : 0);
      break;
    case CUDNN_TYPE_FLOAT:
      read.floats = copied<float>(values, count);
      break;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
      read.pointers = copied<void*>(values, count);
      break;
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      for (void* const handle : copied<void*>(values, count)) {
        read.objects.push_back(object_of(handle));
        if (!read.objects.back()->finalized) refuse(CUDNN_STATUS_BAD_PARAM, "an attribute is not finalized");
      }
      break;
    default:
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no attributes of type {}", static_cast<int>(type));
  }
  return read;
}

GraphAttribute numbers(cudnnBackendAttributeType_t type, std::vector<int64_t> values) {
  return {.type = type, .numbers = std::move(values)};
}

void check_tensor(const GraphObject& tensor) {
  dnn_element(static_cast<cudnnDataType_t>(tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE)));
  tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  const std::vector<int64_t>& sizes = tensor.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
  if (sizes.size() != 4) refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows tensors of 4 dimensions");
  if (std::ranges::min(sizes) < 1) refuse(CUDNN_STATUS_BAD_PARAM, "a size is not positive");
  const int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  if (tensor.at(CUDNN_ATTR_TENSOR_STRIDES).numbers != std::vector<int64_t>{h * w * c, 1, w * c, c}) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows NHWC only");
  }
}

// The list of a heuristics descriptor, as objects that its results are copied from.
std::vector<std::shared_ptr<const GraphObject>> list_configurations(const GraphObject& heuristics) {
  const GraphAttribute& graph = heuristics.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto mode = static_cast<cudnnBackendHeurMode_t>(heuristics.number(CUDNN_ATTR_ENGINEHEUR_MODE));
  std::vector<std::shared_ptr<const GraphObject>> list;
  for (const Engine& engine : engines_of(*graph.objects.at(0), mode)) {
    GraphObject one{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true, {}};
    one.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = graph;
    one.attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = numbers(CUDNN_TYPE_INT64, {engine.index});
    one.attributes[CUDNN_ATTR_ENGINE_NUMERICAL_NOTE] = numbers(CUDNN_TYPE_NUMERICAL_NOTE, engine.notes);
    GraphObject choice{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, true, {}};
    choice.attributes[CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE] = numbers(CUDNN_TYPE_KNOB_TYPE, {CUDNN_KNOB_TYPE_SPLIT_K_BUF});
    choice.attributes[CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE] = numbers(CUDNN_TYPE_INT64, {1});
    GraphObject config{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, true, {}};
    config.attributes[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = {.type = CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                            .objects = {std::make_shared<const GraphObject>(choice)}};
    config.attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = {.type = CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                      .objects = {std::make_shared<const GraphObject>(one)}};
    list.push_back(std::make_shared<const GraphObject>(config));
  }
  return list;
}

const GraphObject& engine_of(const GraphObject& plan) {
  return plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).object(CUDNN_ATTR_ENGINECFG_ENGINE);
}

// Checks what an object was given, and works out what it can be asked for.
void finish(GraphObject& object) {
  switch (object.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(object);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      if (object.number(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
          object.number(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
          object.number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2 ||
          object.at(CUDNN_ATTR_CONVOLUTION_DILATIONS).numbers != std::vector<int64_t>{1, 1} ||
          object.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).numbers !=
              object.at(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS).numbers) {
        refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has plain cross-correlations of images in fp32 only");
      }
      return;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return check_convolution(object);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      if (object.number(CUDNN_ATTR_POINTWISE_MODE) != CUDNN_POINTWISE_ADD ||
          object.number(CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT) {
        refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake adds in fp32 only");
      }
      return;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      for (const auto name : {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC}) {
        object.object(name);
      }
      return;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return check_graph(object);
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return require_dnn(static_cast<cudnnHandle_t>(object.at(CUDNN_ATTR_DEVICEPROP_HANDLE).pointers.at(0)));
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      object.at(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
      object.attributes[CUDNN_ATTR_ENGINEHEUR_RESULTS] = {.type = CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                          .objects = list_configurations(object)};
      return;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      object.at(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
      const GraphObject& engine = engine_of(object);
      object.attributes[CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE] =
          numbers(CUDNN_TYPE_INT64, {workspace_of(engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH),
                                                  engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX))});
      return;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      if (object.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).numbers.size() !=
          object.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).pointers.size()) {
        refuse(CUDNN_STATUS_BAD_PARAM, "each name of a tensor needs a pointer");
      }
      object.at(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
      return;
    default:
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no descriptors of type {}", static_cast<int>(object.type));
  }
}

}  // namespace

const GraphAttribute& GraphObject::at(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  if (found == attributes.end()) refuse(CUDNN_STATUS_BAD_PARAM, "attribute {} is missing", static_cast<int>(name));
  return found->second;
}

}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* handle) {
  return dnn_call("cudnnBackendCreateDescriptor", [&] {
    auto made = std::make_shared<GraphObject>();
    made->type = type;
    *handle = made.get();
    machine().library_objects.insert(*handle);
    objects.emplace(*handle, std::move(made));
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  const std::lock_guard lock(machine().mutex);
  const bool fails = machine().fails_now("cudnnBackendDestroyDescriptor", __builtin_return_address(0));
  if (machine().library_objects.erase(handle) == 0) return CUDNN_STATUS_BAD_PARAM;
  objects.erase(handle);
  return fails ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  return dnn_call("cudnnBackendSetAttribute", [&] {
    GraphObject& object = *object_of(handle);
    if (object.finalized) refuse(CUDNN_STATUS_BAD_PARAM, "a finalized descriptor does not change");
    if (count < 1 || values == nullptr) refuse(CUDNN_STATUS_BAD_PARAM, "an attribute without a value");
    object.attributes[name] = read_attribute(type, count, values);
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  cudnnStatus_t answer = CUDNN_STATUS_SUCCESS;
  const auto finalize = [&] {
    try {
      finish(*object_of(handle));
      object_of(handle)->finalized = true;
    } catch (const Refused& refused) {
      const bool mistake =
          refused.code != CUDNN_STATUS_NOT_SUPPORTED && refused.code != CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
      if (mistake) throw;
      answer = static_cast<cudnnStatus_t>(refused.code);
    }
  };
  const cudnnStatus_t status = dnn_call("cudnnBackendFinalize", finalize);
  return status == CUDNN_STATUS_SUCCESS ? answer : status;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  return dnn_call("cudnnBackendGetAttribute", [&] {
    const GraphObject& object = *object_of(handle);
    if (!object.finalized) refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is not finalized");
    const GraphAttribute& attribute = object.at(name);
    if (attribute.type != type) refuse(CUDNN_STATUS_BAD_PARAM, "the attribute has another type");
    const size_t all = std::max(attribute.numbers.size(), attribute.objects.size());
    *count = static_cast<int64_t>(all);
    if (most == 0 || values == nullptr) return;
    const size_t n = std::min(all, static_cast<size_t>(most));
    *count = static_cast<int64_t>(n);
    for (size_t i = 0; i < n; ++i) {
      if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        *object_of(static_cast<void**>(values)[i]) = *attribute.objects[i];
      } else if (type == CUDNN_TYPE_INT64) {
        static_cast<int64_t*>(values)[i] = attribute.numbers[i];
      } else {
        static_cast<int*>(values)[i] = static_cast<int>(attribute.numbers[i]);
      }
    }
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pointers) {
  return dnn_call("cudnnBackendExecute", [&] {
    require_dnn(handle);
    const GraphObject& engine = engine_of(finalized(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
    execute(handle, engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH), engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
            finalized(pointers, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  });
}
