#pragma once

#include <cudnn.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/dnn_graph.h"
#include "tensor/device_cuda.h"

namespace dgc::cuda {

// One convolution in one pass, as cuDNN will compute it. Images are NHWC, filters [out, height, width, in], the bias is
// [out]; all have the key's type and are aligned to kAlignment. Sums are fp32, that with the bias too.
class ConvPlan {
 public:
  // Makes the plans on cuDNN's list for such a GPU (device_properties()) that give the same bits every time, do not
  // round more than Fp32Math says, and take at most 1 GiB of workspace, one after the other, until `take` returns true.
  // The list comes from rules, not from measurements, so that every rank on such a GPU and every run has the same.
  // A plan may come twice.
  static void for_each(const GraphDescriptor& device, const PlannedConv&, Fp32Math,
                       const std::function<bool(std::unique_ptr<ConvPlan>)>& take);
  // The first of them, or the first behind so many that are passed over. Null: there is none.
  static std::unique_ptr<ConvPlan> first(const GraphDescriptor& device, const PlannedConv&, Fp32Math,
                                         size_t passed_over = 0);

  // What the pass computes (y, dx, or the filter's gradient) is overwritten, unless the key says that dx is added to.
  struct Memory {
    const void *x, *filter, *y;
    void* workspace;
    const void* bias = nullptr;  // only looked at where the pass adds one
  };
  void run(cudnnHandle_t, const Memory&) const;  // queues the pass; throws as check() does

  size_t workspace_bytes() const { return workspace_bytes_; }
  // cuDNN's numbers of the code that computes it and of the settings of that code: "engine 12, 2=1 5=0".
  std::string name() const;

 private:
  ConvPlan(GraphDescriptor plan, GraphDescriptor config, std::shared_ptr<const GraphDescriptor> graph, bool bias);

  // A plan may look into what it was made of.
  std::shared_ptr<const GraphDescriptor> graph_;
  GraphDescriptor config_, plan_;
  size_t workspace_bytes_;
  bool bias_;
};

// Finds the plan of each convolution once, at its first use, and keeps it.
class ConvCache {
 public:
  // Throws UserError where `plans`, if not null, are for another GPU or another cuDNN.
  ConvCache(Fp32Math math, std::shared_ptr<const ConvPlans> plans, const CudaDevice&);
  // Lets `queue` run the convolution's plan on the device's stream. False: cuDNN has none. cuDNN lists plans that it
  // cannot execute. One that is refused when it is first run, outside of a recording, is passed over for good: for the
  // next plan, or for none. That depends on cuDNN and the GPU alone, so all ranks on such GPUs go on alike. Throws
  // UserError where cuDNN does not have the plan that it should take, LibraryError where it refuses that one.
  bool run(cudnnHandle_t, const CudaDevice&, const PlannedConv&, const std::function<void(const ConvPlan&)>& queue);

 private:
  struct Found {
    std::unique_ptr<ConvPlan> plan;
    size_t passed_over = 0;
    bool has_run = false;
  };
  Found& find(cudnnHandle_t, const PlannedConv&);
  const std::string* name_of_chosen(const PlannedConv&) const;  // null: none was chosen
  std::unique_ptr<ConvPlan> make(const PlannedConv&, size_t passed_over) const;

  Fp32Math math_;
  std::shared_ptr<const ConvPlans> chosen_;
  std::optional<GraphDescriptor> device_;
  std::map<PlannedConv, Found> plans_;
};

}  // namespace dgc::cuda
