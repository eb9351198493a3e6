// Convolutions by plain loops over NHWC images and [out, height, width, in] filters, summed in double.
#include <array>
#include <optional>

#include "tests/fake_cuda/dnn_graph.h"

namespace dgc::fake_cuda {
namespace {

enum class Pass { forward, backward_data, backward_filter };

// A tensor of the operation: its name in the graph, and how much it holds.
struct Part {
  int64_t id;
  const char* what;
  size_t numel;
  size_t alignment;
};

struct Convolution {
  Pass pass;
  Element type;
  size_t n, in_c, in_h, in_w, out_c, out_h, out_w, h, w, group_c, group_out;
  std::vector<int64_t> pads, strides;
  Part x, filter, y;
  std::optional<Part> bias = {};
  bool adds = false;  // to dx

  // Calls body(i in x, j in the filter, k in y, channels), for rows of channels that meet, of one group each.
  template <typename Body>
  void each_row(const Body& body) const {
    for (size_t image = 0; image < n; ++image) {
      for (size_t oh = 0; oh < out_h; ++oh) {
        for (size_t ow = 0; ow < out_w; ++ow) {
          for (size_t fh = 0; fh < h; ++fh) {
            const auto ih = static_cast<int64_t>(oh) * strides[0] + static_cast<int64_t>(fh) - pads[0];
            if (ih < 0 || ih >= static_cast<int64_t>(in_h)) continue;
            for (size_t fw = 0; fw < w; ++fw) {
              const auto iw = static_cast<int64_t>(ow) * strides[1] + static_cast<int64_t>(fw) - pads[1];
              if (iw < 0 || iw >= static_cast<int64_t>(in_w)) continue;
              const size_t pixel = (image * in_h + static_cast<size_t>(ih)) * in_w + static_cast<size_t>(iw);
              for (size_t k = 0; k < out_c; ++k) {
                body(pixel * in_c + k / group_out * group_c, ((k * h + fh) * w + fw) * group_c,
                     ((image * out_h + oh) * out_w + ow) * out_c + k, group_c);
              }
            }
          }
        }
      }
    }
  }
};

// What attributes are called in each pass.
struct Names {
  Pass pass;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};

Names names_of(const GraphObject& operation) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {Pass::forward,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {Pass::backward_data,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {Pass::backward_filter,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

Part part(const GraphObject& tensor, const char* what) {
  size_t numel = 1;
  for (const int64_t size : tensor.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers) numel *= static_cast<size_t>(size);
  return {tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID), what, numel,
          static_cast<size_t>(tensor.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT))};
}

Convolution describe(const GraphObject& operation) {
  const Names names = names_of(operation);
  const GraphObject &x = operation.object(names.x), &filter = operation.object(names.filter),
                    &y = operation.object(names.y), &how = operation.object(names.convolution);
  const auto type = x.number(CUDNN_ATTR_TENSOR_DATA_TYPE);
  const bool sums = y.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  if (filter.number(CUDNN_ATTR_TENSOR_DATA_TYPE) != type ||
      y.number(CUDNN_ATTR_TENSOR_DATA_TYPE) != (sums ? int64_t{CUDNN_DATA_FLOAT} : type)) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "images and filters of two types");
  }
  const bool adds = operation.at(names.beta).floats.at(0) == 1;
  if (operation.at(names.alpha).floats != std::vector{1.0f} ||
      operation.at(names.beta).floats != std::vector{adds ? 1.0f : 0.0f} ||
      (adds && names.pass != Pass::backward_data)) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake scales nothing, and adds to dx alone");
  }
  const auto& in = x.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
  const auto& f = filter.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
  const auto& out = y.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
  const auto& pads = how.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).numbers;
  const auto& strides = how.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).numbers;
  const auto fits = [&](size_t side) {
    return out[2 + side] == (in[2 + side] + 2 * pads.at(side) - f[2 + side]) / strides.at(side) + 1;
  };
  const int64_t groups = in[1] / f[1];
  if (out[0] != in[0] || f[0] != out[1] || in[1] % f[1] != 0 || f[0] % groups != 0 || !fits(0) || !fits(1)) {
    refuse(CUDNN_STATUS_BAD_PARAM, "the sizes of a convolution do not agree");
  }
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  return {.pass = names.pass,
          .type = dnn_element(static_cast<cudnnDataType_t>(type)),
          .n = size(in[0]),
          .in_c = size(in[1]),
          .in_h = size(in[2]),
          .in_w = size(in[3]),
          .out_c = size(out[1]),
          .out_h = size(out[2]),
          .out_w = size(out[3]),
          .h = size(f[2]),
          .w = size(f[3]),
          .group_c = size(f[1]),
          .group_out = size(f[0] / groups),
          .pads = pads,
          .strides = strides,
          .x = part(x, "x, or dx"),
          .filter = part(filter, "the filter, or its gradient"),
          .y = part(y, "y, or dy"),
          .adds = adds};
}

// Sums that have no memory get a bias, in the second operation.
Convolution convolution_of(const GraphObject& graph) {
  const auto& operations = graph.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects;
  Convolution c = describe(*operations.at(0));
  const GraphObject& made = operations[0]->object(names_of(*operations[0]).y);
  const bool sums = made.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  if (operations.size() != (sums ? 2 : 1)) refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no graphs of this kind");
  if (!sums) return c;
  const GraphObject& add = *operations[1];
  if (c.pass != Pass::forward || add.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake adds a bias to what a forward pass gives");
  }
  const GraphObject &from = add.object(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                    &bias = add.object(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                    &y = add.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const auto type = y.number(CUDNN_ATTR_TENSOR_DATA_TYPE);
  if (from.number(CUDNN_ATTR_TENSOR_UNIQUE_ID) != made.number(CUDNN_ATTR_TENSOR_UNIQUE_ID) ||
      y.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers != made.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers ||
      bias.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers != std::vector<int64_t>{1, static_cast<int64_t>(c.out_c), 1, 1}) {
    refuse(CUDNN_STATUS_BAD_PARAM, "the tensors of a sum do not agree");
  }
  if (dnn_element(static_cast<cudnnDataType_t>(type)) != c.type || bias.number(CUDNN_ATTR_TENSOR_DATA_TYPE) != type) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "images and biases of two types");
  }
  c.y = part(y, "y");
  c.bias = part(bias, "the bias");
  return c;
}

constexpr int64_t kDoesNotWork = 0, kUnsteady = 1, kRoundsFactors = 2, kRoundsSums = 3, kTensorCores = 4,
                  kMuchMemory = 5, kGood = 6, kDoesNotCompile = 7;
constexpr int64_t kMuch = int64_t{3} << 30;

size_t workspace_bytes(const Convolution& c) { return 512 + c.filter.numel * sizeof(float); }

void* pointer_to(const Part& part, Element type, const GraphObject& pointers) {
  const auto& ids = pointers.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).numbers;
  const auto found = std::ranges::find(ids, part.id);
  if (found == ids.end()) refuse(CUDNN_STATUS_BAD_PARAM, "there is no pointer to {}", part.what);
  const auto& all = pointers.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).pointers;
  void* const pointer = all[static_cast<size_t>(found - ids.begin())];
  require_device(CUDNN_STATUS_BAD_PARAM, part.what, pointer, part.numel * size_of(type), part.alignment);
  return pointer;
}

// Each gives one tensor as a function of the others.
void forward(const Convolution& c, const void* x, const void* filter, const void* bias, void* y) {
  const std::vector<float> image = get_all(c.type, x, c.x.numel), weights = get_all(c.type, filter, c.filter.numel);
  std::vector<double> out(c.y.numel);
  c.each_row([&](size_t i, size_t j, size_t k, size_t n) {
    double sum = 0;
    for (size_t m = 0; m < n; ++m) sum += static_cast<double>(image[i + m]) * static_cast<double>(weights[j + m]);
    out[k] += sum;
  });
  for (size_t k = 0; bias != nullptr && k < out.size(); ++k)
    out[k] += static_cast<double>(get(c.type, bias, k % c.out_c));
  put_all(c.type, y, {out.begin(), out.end()});
}

void backward_data(const Convolution& c, void* dx, const void* filter, const void* dy) {
  const std::vector<float> from = get_all(c.type, dy, c.y.numel), weights = get_all(c.type, filter, c.filter.numel);
  std::vector<double> out(c.x.numel);
  for (size_t i = 0; c.adds && i < out.size(); ++i) out[i] = static_cast<double>(get(c.type, dx, i));
  c.each_row([&](size_t i, size_t j, size_t k, size_t n) {
    const auto d = static_cast<double>(from[k]);
    for (size_t m = 0; m < n; ++m) out[i + m] += d * static_cast<double>(weights[j + m]);
  });
  put_all(c.type, dx, {out.begin(), out.end()});
}

void backward_filter(const Convolution& c, const void* x, void* dfilter, const void* dy) {
  const std::vector<float> image = get_all(c.type, x, c.x.numel), from = get_all(c.type, dy, c.y.numel);
  std::vector<double> out(c.filter.numel);
  c.each_row([&](size_t i, size_t j, size_t k, size_t n) {
    const auto d = static_cast<double>(from[k]);
    for (size_t m = 0; m < n; ++m) out[j + m] += d * static_cast<double>(image[i + m]);
  });
  put_all(c.type, dfilter, {out.begin(), out.end()});
}

}  // namespace

void check_convolution(const GraphObject& operation) { describe(operation); }
void check_graph(const GraphObject& graph) { convolution_of(graph); }

std::vector<Engine> engines_of(const GraphObject& graph, cudnnBackendHeurMode_t mode) {
  const Convolution c = convolution_of(graph);
  const Options& options = machine().options;
  const Algorithms known = c.pass == Pass::forward         ? options.forward
                           : c.pass == Pass::backward_data ? options.backward_data
                                                           : options.backward_filter;
  if (known == Algorithms::none) refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine is for this convolution");
  std::vector<Engine> list = {{kDoesNotWork, {}},
                              {kDoesNotCompile, {}},
                              {kUnsteady, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
                              {kRoundsFactors, {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
                              {kRoundsSums, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}}};
  if (known == Algorithms::varying) return list;
  list.push_back({kMuchMemory, {}});
  // The gradient of the data is only on the list of last resorts.
  if (c.pass == Pass::backward_data && mode != CUDNN_HEUR_MODE_FALLBACK) return list;
  list.push_back({kTensorCores, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}});
  list.push_back({kGood, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}});
  return list;
}

int64_t workspace_of(const GraphObject& graph, int64_t engine) {
  if (engine == kDoesNotWork) refuse(CUDNN_STATUS_NOT_SUPPORTED, "this engine does not work after all");
  if (engine == kDoesNotCompile) refuse(CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, "this engine does not compile");
  return engine == kMuchMemory ? kMuch : static_cast<int64_t>(workspace_bytes(convolution_of(graph)));
}

void execute(cudnnHandle_t handle, const GraphObject& graph, int64_t engine, const GraphObject& pointers) {
  if (engine != kGood && engine != kTensorCores)
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake computes with no such engine");
  if ((engine == kTensorCores ? 0 : 1) < machine().options.refused_engines) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "this engine cannot be executed after all");
  }
  const Convolution c = convolution_of(graph);
  void* const x = pointer_to(c.x, c.type, pointers);
  void* const filter = pointer_to(c.filter, c.type, pointers);
  void* const y = pointer_to(c.y, c.type, pointers);
  void* const bias = c.bias ? pointer_to(*c.bias, c.type, pointers) : nullptr;
  void* const workspace = pointers.at(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).pointers.at(0);
  require_device(CUDNN_STATUS_BAD_PARAM, "the workspace", workspace, workspace_bytes(c), 16);
  constexpr const char* kNames[] = {"convolution forward", "convolution backward data", "convolution backward filter"};
  machine().enqueue(handle->stream, kNames[static_cast<int>(c.pass)], [=] {
    spoil(workspace, workspace_bytes(c));
    if (c.pass == Pass::forward) return forward(c, x, filter, bias, y);
    if (c.pass == Pass::backward_data) return backward_data(c, x, filter, y);
    backward_filter(c, x, filter, y);
  });
}

}  // namespace dgc::fake_cuda
