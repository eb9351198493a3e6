#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/libraries.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using cuda::ConvPlan;

constexpr int kRuns = 10;   // in a row, which are one recording
constexpr int kWarmUp = 4;  // of such stretches: a body is recorded in the third
constexpr int kStretches = 5;

// Some engines take a hundred times as long as others, and 90 runs of one of those are seconds. A plan that took so
// many times as long as the fastest before it is run no more.
constexpr double kHopeless = 3;
constexpr double kLeastHopeless = 200;  // microseconds: below this, one run is mostly the host's time

// The memory of one convolution: zeros.
class Images {
 public:
  Images(const std::shared_ptr<Device>& device, const Conv2dArgs& a, DType type)
      : x_(device, bytes(a.batch * a.in_h * a.in_w * a.in_c, type)),
        filter_(device, bytes(a.filter().numel(), type)),
        y_(device, bytes(a.batch * a.out_h() * a.out_w() * a.out_c, type)),
        bias_(device, bytes(a.out_c, type)) {}

  ConvPlan::Memory with(const Buffer& workspace) const {
    return {x_.data(), filter_.data(), y_.data(), workspace.data(), bias_.data()};
  }

 private:
  static size_t bytes(int64_t numel, DType type) { return static_cast<size_t>(numel) * dtype_size(type); }

  Buffer x_, filter_, y_, bias_;
};

// Of one run, the host's time to queue it included. The run before it may have compiled or loaded the kernel.
double microseconds_once(const ConvPlan& plan, cudnnHandle_t dnn, const ConvPlan::Memory& memory, Stopwatch& watch) {
  plan.run(dnn, memory);
  watch.start();
  plan.run(dnn, memory);
  watch.stop();
  return 1000 * watch.milliseconds();
}

// A training replays recordings, and so does this: queueing a small convolution takes the host longer than computing it
// takes the GPU.
double microseconds(const ConvPlan& plan, cudnnHandle_t dnn, const ConvPlan::Memory& memory, const CudaDevice& device,
                    Stopwatch& watch) {
  cuda::Graphs graphs(device, std::make_shared<std::atomic<size_t>>());
  const auto run = [&] {
    graphs.run({0}, [&] {
      for (int i = 0; i < kRuns; ++i) plan.run(dnn, memory);
    });
  };
  for (int i = 0; i < kWarmUp; ++i) run();
  std::array<double, kStretches> stretches;
  for (double& stretch : stretches) {
    watch.start();
    run();
    watch.stop();
    stretch = 1000 * watch.milliseconds() / kRuns;
  }
  std::ranges::sort(stretches);
  return stretches[kStretches / 2];
}

}  // namespace

ConvTimings time_convolutions(int index, Fp32Math math, std::span<const PlannedConv> convolutions,
                              const ConvTimed& timed) {
  const auto device = std::make_shared<CudaDevice>(index);
  cuda::Libraries libraries(device);
  const cuda::GraphDescriptor properties = cuda::device_properties(libraries.dnn());
  const auto watch = device->make_stopwatch();
  ConvTimings timings{device->model(), cuda::cudnn_version(), {}};
  for (const PlannedConv& key : convolutions) {
    const Images images(device, key.args, key.type);
    std::vector<ConvTimings::Plan> plans;
    std::set<std::string> names;
    double fastest = INFINITY;
    ConvPlan::for_each(properties, key, math, [&](const std::unique_ptr<ConvPlan>& plan) {
      if (!names.insert(plan->name()).second) return false;
      const Buffer workspace(device, plan->workspace_bytes());
      try {
        const ConvPlan::Memory memory = images.with(workspace);
        double time = microseconds_once(*plan, libraries.dnn(), memory, *watch);
        if (time < std::max(kLeastHopeless, kHopeless * fastest)) {
          time = microseconds(*plan, libraries.dnn(), memory, *device, *watch);
        }
        fastest = std::min(fastest, time);
        plans.push_back({plan->name(), time});
      } catch (const cuda::LibraryError&) {
        // cuDNN lists plans that it cannot execute. Where it was the GPU that failed, synchronize() throws.
      } catch (const UserError&) {
        // The plan needs more memory than its workspace, and there is none.
      }
      device->synchronize();  // the workspace is given back
      return false;
    });
    timings.convolutions.push_back({key, std::move(plans)});
    timed(timings.convolutions.back());
  }
  return timings;
}

}  // namespace dgc
