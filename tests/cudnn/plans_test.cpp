// cuDNN itself, which needs no GPU to say how it would compute a convolution on one whose properties it is told.
#include <catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/conv_cache.h"
#include "tensor/errors.h"

using namespace dgc;
using cuda::ConvPlan, cuda::GraphDescriptor;

namespace {

struct Gpu {
  const char* name;
  int compute_capability;  // times 100
  int multiprocessors, shared_memory_bytes, l2_bytes;
  int64_t memory_bytes;
};
constexpr Gpu kGpus[] = {{"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040, 84987740160},
                         {"NVIDIA H100 80GB HBM3", 900, 132, 232448, 52428800, 85017493504},
                         {"NVIDIA H200", 900, 132, 232448, 62914560, 150120693760}};

// The properties in the words of cuDNN 9.19, which are not documented: another version may want other words.
GraphDescriptor properties_of(const Gpu& gpu) {
  const std::string json = fmt::format(
      R"({{"deviceName": "{}", "deviceVer": {}, "multiProcessorCount": {}, "maxSharedMemoryPerBlockOptin": {},
          "l2CacheSize": {}, "totalGlobalMem": {}, "cudaDeviceId": 0, "driverVer": 13000, "isTccDriver": 0,
          "maxCtasPerSM": 32, "maxRegistersPerSM": 65536, "regsPerBlock": 65536, "maxThreadsPerSM": 2048,
          "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "maxThreadsPerBlock": 1024,
          "maxBlockSize": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535], "warpSize": 32,
          "smClockRateKHz": 1755000, "memClockRateKHz": 2619000, "pciDeviceId": 1, "supportCoopLaunch": 1}})",
      gpu.name, gpu.compute_capability, gpu.multiprocessors, gpu.shared_memory_bytes, gpu.l2_bytes, gpu.memory_bytes);
  GraphDescriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set_all(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json.c_str(), json.size() + 1));
  REQUIRE(properties.finalize());
  return properties;
}

bool can_be_told() {
  try {
    properties_of(kGpus[0]);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Conv2dArgs square(int64_t batch, int64_t side, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                  int64_t groups = 1) {
  return {batch, side, side, in, out, kernel, kernel, stride, stride, pad, pad, groups};
}

// The convolutions of the models that the paper trains, with its batch for one GPU.
std::vector<Conv2dArgs> paper_convolutions() {
  std::vector<Conv2dArgs> all;
  for (int64_t stage = 0, in = 16; stage < 3; ++stage) {  // ResNet-20 and -110
    const int64_t out = 16 << stage, side = 32 >> stage;
    all.push_back(square(128, side * (stage > 0 ? 2 : 1), stage > 0 ? in : 3, out, 3, stage > 0 ? 2 : 1, 1));
    all.push_back(square(128, side, out, out, 3, 1, 1));
    in = out;
  }
  all.push_back(square(64, 224, 3, 64, 7, 2, 3));  // ResNet-50
  for (int64_t stage = 0, in = 64; stage < 4; ++stage) {
    const int64_t width = 64 << stage, side = 56 >> stage, before = stage > 0 ? side * 2 : side;
    const int64_t stride = stage > 0 ? 2 : 1;
    all.push_back(square(64, before, in, width, 1, 1, 0));
    all.push_back(square(64, before, width, width, 3, stride, 1));
    all.push_back(square(64, before, in, 4 * width, 1, stride, 0));
    all.push_back(square(64, side, width, 4 * width, 1, 1, 0));
    all.push_back(square(64, side, 4 * width, width, 1, 1, 0));
    all.push_back(square(64, side, width, width, 3, 1, 1));
    in = 4 * width;
  }
  all.push_back(square(128, 224, 3, 96, 11, 4, 2));  // AlexNet
  all.push_back(square(128, 27, 96, 256, 5, 1, 2, 2));
  all.push_back(square(128, 13, 256, 384, 3, 1, 1));
  all.push_back(square(128, 13, 384, 384, 3, 1, 1, 2));
  all.push_back(square(128, 13, 384, 256, 3, 1, 1, 2));
  all.push_back({32, 1600, 161, 1, 32, 11, 41, 2, 2, 5, 20, 1});  // Deep Speech
  all.push_back({32, 800, 81, 32, 32, 11, 21, 1, 2, 5, 10, 1});
  return all;
}

}  // namespace

TEST_CASE("cuDNN has a plan with the same bits every time for each pass of the paper's convolutions") {
  if (!can_be_told()) {
    WARN("skipped: this cuDNN is older than 9.8, or describes GPUs in other words than 9.19");
    return;
  }
  const Gpu gpu = GENERATE(from_range(std::begin(kGpus), std::end(kGpus)));
  const GraphDescriptor device = properties_of(gpu);
  struct Precision {
    DType type;
    Fp32Math math;
  };
  for (const auto [type, math] : {Precision{DType::f32, Fp32Math::exact}, Precision{DType::f32, Fp32Math::tf32},
                                  Precision{DType::bf16, Fp32Math::exact}, Precision{DType::f16, Fp32Math::exact}}) {
    for (const Conv2dArgs& args : paper_convolutions()) {
      for (const auto pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
        CAPTURE(gpu.name, type, math, pass, args.in_h, args.in_c, args.out_c, args.kernel_h, args.stride_h);
        const auto plan = ConvPlan::first(device, {pass, args, type}, math);
        REQUIRE(plan != nullptr);
        CHECK(plan->workspace_bytes() <= size_t{1} << 30);
        const auto again = ConvPlan::first(device, {pass, args, type}, math);
        CHECK(again->name() == plan->name());
        CHECK(again->workspace_bytes() == plan->workspace_bytes());
      }
      CHECK(ConvPlan::first(device, {ConvPass::forward, args, type, true}, math) != nullptr);        // with a bias
      CHECK(ConvPlan::first(device, {ConvPass::backward_data, args, type, true}, math) != nullptr);  // added to dx
    }
  }
}

TEST_CASE("cuDNN answers for any sizes of a convolution, and takes what a plan is given") {
  if (!can_be_told()) return;
  const GraphDescriptor device = properties_of(kGpus[1]);
  const Conv2dArgs all[] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1},    {2, 7, 5, 1, 3, 3, 3, 1, 1, 1, 1, 1},
                            {2, 9, 6, 5, 4, 3, 2, 2, 1, 1, 0, 1},    {2, 6, 6, 16, 16, 3, 3, 1, 1, 1, 1, 16},
                            {2, 4, 5, 2, 3, 2, 2, 1, 3, 3, 2, 1},    {1, 8, 8, 4, 4, 3, 3, 2, 2, 0, 0, 1},
                            {1, 9, 45, 2, 4, 11, 41, 1, 2, 5, 20, 1}};
  for (const Conv2dArgs& args : all) {
    for (const auto type : {DType::f32, DType::bf16, DType::f16}) {
      for (const auto pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
        CAPTURE(type, pass, args.in_h, args.in_c, args.out_c, args.kernel_h, args.stride_h, args.groups);
        const auto plan = ConvPlan::first(device, {pass, args, type}, Fp32Math::exact);
        if (plan == nullptr) continue;  // matrix products do it
        int memory = 0;
        // All but the GPU is there.
        CHECK_THROWS_WITH(plan->run(nullptr, {&memory, &memory, &memory, &memory, &memory}),
                          Catch::Matchers::StartsWith("cuDNN: cudnnBackendExecute: "));
      }
    }
  }
}

TEST_CASE("cuDNN's plans have names by which they are found again") {
  if (!can_be_told()) return;
  const GraphDescriptor device = properties_of(kGpus[1]);
  const auto names = [&](const PlannedConv& key) {
    std::vector<std::string> all;
    ConvPlan::for_each(device, key, Fp32Math::exact, [&](const std::unique_ptr<ConvPlan>& plan) {
      all.push_back(plan->name());
      return false;
    });
    return all;
  };
  for (const auto pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      CAPTURE(pass, type);
      const PlannedConv key{pass, square(128, 32, 16, 16, 3, 1, 1), type};
      const std::vector<std::string> all = names(key);
      CHECK(all == names(key));
      CHECK(all.at(0) == ConvPlan::first(device, key, Fp32Math::exact)->name());
      CHECK(std::set<std::string>(all.begin(), all.end()).size() > 1);
      CHECK_THAT(all[0], Catch::Matchers::StartsWith("engine "));
    }
  }
}
