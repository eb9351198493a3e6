// dgc plan models a step by the launches that CountingBackend says. They are as many as the CUDA backend makes.
#include <catch.hpp>

#include "tests/fake_cuda/support.h"
#include "tests/support/rank_steps.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"
#include "tools/step_model.h"

using namespace dgc;
using namespace dgc::test;

namespace {

bool launches(const std::string& call) {
  return call == "cudaLaunchKernelExC" || call.starts_with("cublasGemm") || call == "cudnnBackendExecute" ||
         call.starts_with("cudnnRNNForward") || call.starts_with("cudnnRNNBackward");
}

// Of the second step: in the first, a backend also prepares what it caches.
int64_t launches_of_a_step(const Config& config) {
  int64_t count = 0;
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    step(rank);
    fake_cuda::fail(0);  // counts anew
    rank.train_step();
    for (const auto& [site, times] : fake_cuda::call_sites()) {
      if (launches(site.call)) count += times;
    }
    rank.finish_steps();
    while (rank.next_metrics()) {
    }
  });
  return count;
}

}  // namespace

TEST_CASE("a step's modelled launches are those of the CUDA backend") {
  const Gpu gpu;
  const auto check = [](const Config& config) {
    CHECK(model_step(config, device_model("h200")).total.launches == launches_of_a_step(config));
  };
  const std::vector<std::string> on_gpu = {"device=cuda:0", "workers_per_rank=2", "workers_at_once=1"};
  SECTION("layers, with biases") { check(tiny_config(on_gpu)); }
  SECTION("ResNet") {
    auto overrides = on_gpu;
    overrides.push_back(R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 4})");
    const auto optimizer = GENERATE(as<std::string>(), kSgd, kDgc);
    overrides.push_back(optimizer);
    check(tiny_config(overrides));
  }
  SECTION("text") {
    const TinyText text;
    auto overrides = on_gpu;
    overrides.push_back(fmt::format("model.vocabulary={}", 16));
    check(text.config(overrides));
  }
  SECTION("speech") {
    const TinySpeech speech;
    check(speech.config(on_gpu));
  }
}
