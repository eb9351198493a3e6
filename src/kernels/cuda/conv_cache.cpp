#include "kernels/cuda/conv_cache.h"

#include <span>

namespace dgc::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{1} << 30;

void set_image(cudnnTensorDescriptor_t tensor, DType type, int64_t batch, int64_t channels, int64_t h, int64_t w) {
  check(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NHWC, dnn_type(type), to_int(batch), to_int(channels),
                                   to_int(h), to_int(w)),
        "cudnnSetTensor4dDescriptor");
}

// That cuDNN does not do something, or not with these sizes, is an answer; everything else but success is thrown.
bool does(cudnnStatus_t answer, const char* call) {
  if (answer < CUDNN_STATUS_BAD_PARAM || answer >= CUDNN_STATUS_INTERNAL_ERROR) check(answer, call);
  return answer == CUDNN_STATUS_SUCCESS;
}

// Chooses the first algorithm on the list that is deterministic and whose workspace is at most kMostWorkspace bytes
// with the arithmetic that it will use. bytes_of(algorithm, bytes) asks cuDNN for the size of the workspace. Returns
// false where there is none.
template <typename Result, typename BytesOf>
bool choose(PreparedConv& conv, const ConvKey& key, Fp32Math math, std::span<const Result> list, auto& algorithm,
            const BytesOf& bytes_of) {
  const bool exact = key.type == DType::f32 && math == Fp32Math::exact;
  for (const Result& result : list) {
    if (result.status != CUDNN_STATUS_SUCCESS || result.determinism != CUDNN_DETERMINISTIC) continue;
    const cudnnMathType_t arithmetic = exact ? CUDNN_FMA_MATH : result.mathType;
    check(cudnnSetConvolutionMathType(conv.conv, arithmetic), "cudnnSetConvolutionMathType");
    if (!does(bytes_of(result.algo, &conv.workspace_bytes), "cudnnGetConvolution...WorkspaceSize")) continue;
    if (conv.workspace_bytes > kMostWorkspace) continue;
    algorithm = result.algo;
    return true;
  }
  return false;
}

constexpr int kMostResults = 16;  // cuDNN has at most 8 algorithms for a pass

bool choose_forward(cudnnHandle_t dnn, const ConvKey& key, Fp32Math math, PreparedConv& c) {
  cudnnConvolutionFwdAlgoPerf_t list[kMostResults];
  int found = 0;
  if (!does(cudnnGetConvolutionForwardAlgorithm_v7(dnn, c.x, c.w, c.conv, c.y, kMostResults, &found, list),
            "cudnnGetConvolutionForwardAlgorithm_v7"))
    return false;
  return choose<cudnnConvolutionFwdAlgoPerf_t>(
      c, key, math, {list, static_cast<size_t>(found)}, c.algorithm.forward, [&](auto algorithm, size_t* bytes) {
        return cudnnGetConvolutionForwardWorkspaceSize(dnn, c.x, c.w, c.conv, c.y, algorithm, bytes);
      });
}

bool choose_backward_data(cudnnHandle_t dnn, const ConvKey& key, Fp32Math math, PreparedConv& c) {
  cudnnConvolutionBwdDataAlgoPerf_t list[kMostResults];
  int found = 0;
  if (!does(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, c.w, c.y, c.conv, c.x, kMostResults, &found, list),
            "cudnnGetConvolutionBackwardDataAlgorithm_v7"))
    return false;
  return choose<cudnnConvolutionBwdDataAlgoPerf_t>(
      c, key, math, {list, static_cast<size_t>(found)}, c.algorithm.backward_data, [&](auto algorithm, size_t* bytes) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, c.w, c.y, c.conv, c.x, algorithm, bytes);
      });
}

bool choose_backward_weights(cudnnHandle_t dnn, const ConvKey& key, Fp32Math math, PreparedConv& c) {
  cudnnConvolutionBwdFilterAlgoPerf_t list[kMostResults];
  int found = 0;
  if (!does(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, c.x, c.y, c.conv, c.w, kMostResults, &found, list),
            "cudnnGetConvolutionBackwardFilterAlgorithm_v7"))
    return false;
  return choose<cudnnConvolutionBwdFilterAlgoPerf_t>(c, key, math, {list, static_cast<size_t>(found)},
                                                     c.algorithm.backward_weights, [&](auto algorithm, size_t* bytes) {
                                                       return cudnnGetConvolutionBackwardFilterWorkspaceSize(
                                                           dnn, c.x, c.y, c.conv, c.w, algorithm, bytes);
                                                     });
}

}  // namespace

PreparedConv::PreparedConv(const ConvKey& key) {
  const Conv2dArgs& a = key.args;
  set_image(x, key.type, a.batch, a.in_c, a.in_h, a.in_w);
  set_image(y, key.type, a.batch, a.out_c, a.out_h(), a.out_w());
  check(cudnnSetFilter4dDescriptor(w, dnn_type(key.type), CUDNN_TENSOR_NHWC, to_int(a.out_c), to_int(a.in_c / a.groups),
                                   to_int(a.kernel_h), to_int(a.kernel_w)),
        "cudnnSetFilter4dDescriptor");
  check(cudnnSetConvolution2dDescriptor(conv, to_int(a.pad_h), to_int(a.pad_w), to_int(a.stride_h), to_int(a.stride_w),
                                        1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolution2dDescriptor");
  check(cudnnSetConvolutionGroupCount(conv, to_int(a.groups)), "cudnnSetConvolutionGroupCount");
}

const PreparedConv* ConvCache::find(cudnnHandle_t dnn, const ConvKey& key) {
  const auto known = prepared_.find(key);
  if (known != prepared_.end()) return known->second.get();
  auto made = std::make_unique<PreparedConv>(key);
  check(cudnnSetConvolutionMathType(made->conv, math_type(key.type, math_)), "cudnnSetConvolutionMathType");
  const auto choose_algorithm = [&] {
    switch (key.pass) {
      case ConvPass::forward:
        return choose_forward(dnn, key, math_, *made);
      case ConvPass::backward_data:
        return choose_backward_data(dnn, key, math_, *made);
      case ConvPass::backward_weights:
        break;
    }
    return choose_backward_weights(dnn, key, math_, *made);
  };
  if (!choose_algorithm()) made.reset();
  return prepared_.emplace(key, std::move(made)).first->second.get();
}

}  // namespace dgc::cuda
