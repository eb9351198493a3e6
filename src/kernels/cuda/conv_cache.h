#pragma once

#include <cudnn.h>

#include <map>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/libraries.h"

namespace dgc::cuda {

enum class ConvPass { forward, backward_data, backward_weights };

struct ConvKey {
  ConvPass pass;
  Conv2dArgs args;
  DType type;
  auto operator<=>(const ConvKey&) const = default;
};

// What cuDNN needs to know about one convolution, in one pass. Images are NHWC, filters [out, height, width, in].
struct PreparedConv {
  explicit PreparedConv(const ConvKey& key);

  TensorDescriptor x, y;
  FilterDescriptor w;
  ConvolutionDescriptor conv;
  union {  // the algorithm of the pass
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t backward_data;
    cudnnConvolutionBwdFilterAlgo_t backward_weights;
  } algorithm{};
  size_t workspace_bytes = 0;
};

// Prepares each convolution once, at its first use, and keeps it. The algorithm is the first deterministic one on
// cuDNN's list. The list comes from rules, not from measurements, so that every rank and every run has the same
// algorithm. Where cuDNN has none, find() returns null.
class ConvCache {
 public:
  explicit ConvCache(Fp32Math math) : math_(math) {}
  const PreparedConv* find(cudnnHandle_t, const ConvKey&);

 private:
  Fp32Math math_;
  std::map<ConvKey, std::unique_ptr<PreparedConv>> prepared_;  // null: cuDNN has none
};

}  // namespace dgc::cuda
