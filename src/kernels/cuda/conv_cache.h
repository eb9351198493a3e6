#pragma once

#include <cudnn.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/dnn_graph.h"

namespace dgc::cuda {

enum class ConvPass { forward, backward_data, backward_weights };

struct ConvKey {
  ConvPass pass;
  Conv2dArgs args;
  DType type;
  bool adds = false;  // forward: a bias; backward_data: to what dx holds
  auto operator<=>(const ConvKey&) const = default;
};

// One convolution in one pass, as cuDNN will compute it. Images are NHWC, filters [out, height, width, in], the bias is
// [out]; all have the key's type and are aligned to kAlignment. Sums are fp32, that with the bias too.
class ConvPlan {
 public:
  // Finds the first plan on cuDNN's list for such a GPU (device_properties()) that gives the same bits every time, does
  // not round more than Fp32Math says, and takes at most 1 GiB of workspace. The list comes from rules, not from
  // measurements, so that every rank on such a GPU and every run has the same plan. Null: there is none.
  static std::unique_ptr<ConvPlan> find(const GraphDescriptor& device, const ConvKey&, Fp32Math);

  // What the pass computes (y, dx, or the filter's gradient) is overwritten, unless the key says that dx is added to.
  struct Memory {
    const void *x, *filter, *y;
    void* workspace;
    const void* bias = nullptr;  // only looked at where the pass adds one
  };
  void run(cudnnHandle_t, const Memory&) const;  // queues the pass

  size_t workspace_bytes() const { return workspace_bytes_; }
  int64_t engine() const;  // cuDNN's number of the code that computes it

 private:
  ConvPlan(GraphDescriptor plan, GraphDescriptor config, GraphDescriptor graph, bool bias);

  // A plan may look into what it was made of.
  GraphDescriptor graph_, config_, plan_;
  size_t workspace_bytes_;
  bool bias_;
};

// Finds the plan of each convolution once, at its first use, and keeps it.
class ConvCache {
 public:
  explicit ConvCache(Fp32Math math) : math_(math) {}
  // Null: cuDNN has none.
  const ConvPlan* find(cudnnHandle_t, const ConvKey&);

 private:
  Fp32Math math_;
  std::optional<GraphDescriptor> device_;
  std::map<ConvKey, std::unique_ptr<ConvPlan>> plans_;
};

}  // namespace dgc::cuda
