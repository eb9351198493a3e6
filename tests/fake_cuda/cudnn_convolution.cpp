// Convolutions by plain loops over NHWC images and [out, height, width, in] filters, summed in double.
#include <algorithm>

#include "tests/fake_cuda/dnn.h"

struct cudnnConvolutionStruct {
  bool set = false;
  int pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace dgc::fake_cuda {
namespace {

constexpr size_t kTooLarge = size_t{3} << 30;

struct Sizes {
  size_t n, in_c, in_h, in_w, out_c, out_h, out_w, h, w, group_c;
  size_t x() const { return n * in_h * in_w * in_c; }
  size_t y() const { return n * out_h * out_w * out_c; }
  size_t filter() const { return out_c * h * w * group_c; }
};

struct Convolution {
  Sizes sizes;
  cudnnConvolutionStruct how;
  Element type;

  // Calls body(i in x, j in the filter, k in y, channels), for rows of channels that meet, of one group each.
  template <typename Body>
  void each_row(const Body& body) const {
    const Sizes& s = sizes;
    const size_t group_out = s.out_c / static_cast<size_t>(how.groups);
    for (size_t n = 0; n < s.n; ++n) {
      for (size_t oh = 0; oh < s.out_h; ++oh) {
        for (size_t ow = 0; ow < s.out_w; ++ow) {
          for (size_t h = 0; h < s.h; ++h) {
            const auto ih = static_cast<int64_t>(oh) * how.stride_h + static_cast<int64_t>(h) - how.pad_h;
            if (ih < 0 || ih >= static_cast<int64_t>(s.in_h)) continue;
            for (size_t w = 0; w < s.w; ++w) {
              const auto iw = static_cast<int64_t>(ow) * how.stride_w + static_cast<int64_t>(w) - how.pad_w;
              if (iw < 0 || iw >= static_cast<int64_t>(s.in_w)) continue;
              const size_t pixel = (n * s.in_h + static_cast<size_t>(ih)) * s.in_w + static_cast<size_t>(iw);
              for (size_t k = 0; k < s.out_c; ++k) {
                body(pixel * s.in_c + k / group_out * s.group_c, ((k * s.h + h) * s.w + w) * s.group_c,
                     ((n * s.out_h + oh) * s.out_w + ow) * s.out_c + k, s.group_c);
              }
            }
          }
        }
      }
    }
  }
};

Convolution describe(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                     cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y) {
  require_dnn(handle);
  require_set(x, "image's descriptor");
  require_set(y, "image's descriptor");
  require_set(w, "filter's descriptor");
  require_set(conv, "convolution's descriptor");
  if (x->type != w->type || x->type != y->type) refuse(CUDNN_STATUS_NOT_SUPPORTED, "images and filters of two types");
  if (!x->nhwc || !y->nhwc || w->format != CUDNN_TENSOR_NHWC) refuse(CUDNN_STATUS_NOT_SUPPORTED, "only NHWC is known");
  if (x->type == CUDNN_DATA_FLOAT && conv->math == CUDNN_TENSOR_OP_MATH) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "fp32 images are multiplied as fp32 or TF32");
  }
  const auto size = [](int n) { return static_cast<size_t>(n); };
  const Sizes s{size(x->sizes[0]), size(x->sizes[1]), size(x->sizes[2]), size(x->sizes[3]), size(y->sizes[1]),
                size(y->sizes[2]), size(y->sizes[3]), size(w->h),        size(w->w),        size(w->c)};
  const auto out = [](int in, int pad, int kernel, int stride) { return (in + 2 * pad - kernel) / stride + 1; };
  if (y->sizes[0] != x->sizes[0] || w->k != y->sizes[1] || w->c * conv->groups != x->sizes[1] ||
      w->k % conv->groups != 0 || y->sizes[2] != out(x->sizes[2], conv->pad_h, w->h, conv->stride_h) ||
      y->sizes[3] != out(x->sizes[3], conv->pad_w, w->w, conv->stride_w)) {
    refuse(CUDNN_STATUS_BAD_PARAM, "the sizes of a convolution do not agree");
  }
  return {s, *conv, dnn_element(x->type)};
}

void require(const Convolution& c, const char* what, const void* pointer, size_t numel) {
  require_device(CUDNN_STATUS_BAD_PARAM, what, pointer, numel * size_of(c.type), size_of(c.type));
}

size_t workspace_of(const Convolution& c) { return 512 + c.sizes.filter() * sizeof(float); }

void require_workspace(const Convolution& c, const void* workspace, size_t bytes) {
  if (bytes < workspace_of(c)) refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
  require_device(CUDNN_STATUS_BAD_PARAM, "the workspace", workspace, bytes, 16);
}

void require_plain(const void* alpha, const void* beta) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake neither scales nor adds");
  }
}

// A list as cuDNN's heuristics give it: what does not work, what is not deterministic and what takes too much memory
// come before what will do.
template <typename Perf, typename Algorithm>
void list(const Convolution& c, Algorithms known, int most, int* found, Perf* results, Algorithm unsupported,
          Algorithm unsteady, Algorithm large, Algorithm good) {
  if (known == Algorithms::none) refuse(CUDNN_STATUS_NOT_SUPPORTED, "no algorithm is for this convolution");
  const bool steady = known == Algorithms::deterministic;
  const cudnnMathType_t math = c.type == Element::f32 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
  const std::array<Perf, 4> all{{
      {unsupported, CUDNN_STATUS_NOT_SUPPORTED, -1, 0, CUDNN_DETERMINISTIC, math, {}},
      {unsteady, CUDNN_STATUS_SUCCESS, 1, workspace_of(c), CUDNN_NON_DETERMINISTIC, math, {}},
      {large, CUDNN_STATUS_SUCCESS, 2, kTooLarge, steady ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC, math, {}},
      {good,
       CUDNN_STATUS_SUCCESS,
       3,
       workspace_of(c),
       steady ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
       math,
       {}},
  }};
  *found = std::min<int>(most, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *found, results);
}

template <typename Algorithm>
void require_good(Algorithm algorithm, Algorithm good) {
  if (algorithm != good) refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake does not compute with this algorithm");
}

constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kLargeForward = CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
constexpr auto kBackwardData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr auto kLargeBackwardData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD;
constexpr auto kBackwardFilter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
constexpr auto kLargeBackwardFilter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;

}  // namespace
}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* conv) {
  return create("cudnnCreateConvolutionDescriptor", conv);
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv) {
  return destroy("cudnnDestroyConvolutionDescriptor", conv);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  return dnn_call("cudnnSetConvolution2dDescriptor", [&] {
    if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1) refuse(CUDNN_STATUS_BAD_PARAM, "bad pads or strides");
    if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT) {
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has plain cross-correlations in fp32 only");
    }
    *conv = {true, pad_h, pad_w, stride_h, stride_w, conv->groups, conv->math};
  });
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups) {
  return dnn_call("cudnnSetConvolutionGroupCount", [&] {
    if (groups < 1) refuse(CUDNN_STATUS_BAD_PARAM, "{} groups", groups);
    conv->groups = groups;
  });
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math) {
  return dnn_call("cudnnSetConvolutionMathType", [&] { conv->math = math; });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, const int most, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  return dnn_call("cudnnGetConvolutionForwardAlgorithm_v7", [&] {
    list(describe(handle, x, w, conv, y), machine().options.forward, most, found, results,
         CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_FFT, kLargeForward, kForward);
  });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return dnn_call("cudnnGetConvolutionForwardWorkspaceSize", [&] {
    const Convolution c = describe(handle, x, w, conv, y);
    *bytes = algorithm == kLargeForward ? kTooLarge : workspace_of(c);
  });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  return dnn_call("cudnnConvolutionForward", [&] {
    const Convolution c = describe(handle, x_desc, w_desc, conv, y_desc);
    require_plain(alpha, beta);
    require_good(algorithm, kForward);
    require_workspace(c, workspace, workspace_bytes);
    require(c, "x", x, c.sizes.x());
    require(c, "the filter", w, c.sizes.filter());
    require(c, "y", y, c.sizes.y());
    machine().enqueue(handle->stream, "cudnnConvolutionForward", [=] {
      spoil(workspace, workspace_bytes);
      const std::vector<float> image = get_all(c.type, x, c.sizes.x()), filter = get_all(c.type, w, c.sizes.filter());
      std::vector<double> out(c.sizes.y());
      c.each_row([&](size_t i, size_t j, size_t k, size_t n) {
        double sum = 0;
        for (size_t m = 0; m < n; ++m) sum += static_cast<double>(image[i + m]) * static_cast<double>(filter[j + m]);
        out[k] += sum;
      });
      put_all(c.type, y, {out.begin(), out.end()});
    });
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t conv,
                                                          const cudnnTensorDescriptor_t dx, const int most, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return dnn_call("cudnnGetConvolutionBackwardDataAlgorithm_v7", [&] {
    list(describe(handle, dx, w, conv, dy), machine().options.backward_data, most, found, results,
         CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, kLargeBackwardData, kBackwardData);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return dnn_call("cudnnGetConvolutionBackwardDataWorkspaceSize", [&] {
    const Convolution c = describe(handle, dx, w, conv, dy);
    *bytes = algorithm == kLargeBackwardData ? kTooLarge : workspace_of(c);
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
  return dnn_call("cudnnConvolutionBackwardData", [&] {
    const Convolution c = describe(handle, dx_desc, w_desc, conv, dy_desc);
    require_plain(alpha, beta);
    require_good(algorithm, kBackwardData);
    require_workspace(c, workspace, workspace_bytes);
    require(c, "dx", dx, c.sizes.x());
    require(c, "the filter", w, c.sizes.filter());
    require(c, "dy", dy, c.sizes.y());
    machine().enqueue(handle->stream, "cudnnConvolutionBackwardData", [=] {
      spoil(workspace, workspace_bytes);
      const std::vector<float> from = get_all(c.type, dy, c.sizes.y()), filter = get_all(c.type, w, c.sizes.filter());
      std::vector<double> out(c.sizes.x());
      c.each_row([&](size_t i, size_t j, size_t k, size_t n) {
        const auto d = static_cast<double>(from[k]);
        for (size_t m = 0; m < n; ++m) out[i + m] += d * static_cast<double>(filter[j + m]);
      });
      put_all(c.type, dx, {out.begin(), out.end()});
    });
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t conv,
                                                            const cudnnFilterDescriptor_t dw, const int most,
                                                            int* found, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return dnn_call("cudnnGetConvolutionBackwardFilterAlgorithm_v7", [&] {
    list(describe(handle, x, dw, conv, dy), machine().options.backward_filter, most, found, results,
         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, kLargeBackwardFilter,
         kBackwardFilter);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t conv,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return dnn_call("cudnnGetConvolutionBackwardFilterWorkspaceSize", [&] {
    const Convolution c = describe(handle, x, dw, conv, dy);
    *bytes = algorithm == kLargeBackwardFilter ? kTooLarge : workspace_of(c);
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             size_t workspace_bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
  return dnn_call("cudnnConvolutionBackwardFilter", [&] {
    const Convolution c = describe(handle, x_desc, dw_desc, conv, dy_desc);
    require_plain(alpha, beta);
    require_good(algorithm, kBackwardFilter);
    require_workspace(c, workspace, workspace_bytes);
    require(c, "x", x, c.sizes.x());
    require(c, "dw", dw, c.sizes.filter());
    require(c, "dy", dy, c.sizes.y());
    machine().enqueue(handle->stream, "cudnnConvolutionBackwardFilter", [=] {
      spoil(workspace, workspace_bytes);
      const std::vector<float> image = get_all(c.type, x, c.sizes.x()), from = get_all(c.type, dy, c.sizes.y());
      std::vector<double> out(c.sizes.filter());
      c.each_row([&](size_t i, size_t j, size_t k, size_t n) {
        const auto d = static_cast<double>(from[k]);
        for (size_t m = 0; m < n; ++m) out[j + m] += d * static_cast<double>(image[i + m]);
      });
      put_all(c.type, dw, {out.begin(), out.end()});
    });
  });
}
