// What a profiler shows of a step: phases, in them layers, in them kernels. The library of nvtx/ listens in the place
// of a profiler. tests/fake_cuda/ranges/KIND.txt is the tree of the first step, which is not recorded.
#include <dlfcn.h>
#include <paths.h>

#include <catch.hpp>
#include <cstdlib>

#include "run/file_io.h"
#include "tests/fake_cuda/support.h"
#include "tests/support/rank_steps.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"

using namespace dgc;
using namespace dgc::test;

namespace {

constexpr const char* kLibrary = DGC_NVTX_RANGES;

// NVTX looks for the library at the program's first range.
const bool kInjected = setenv("NVTX_INJECTION64_PATH", kLibrary, 1) == 0;

// Equal ranges in a row become one line with their number.
std::string folded(const std::string& tree) {
  std::string text, line, before;
  int times = 0;
  const auto flush = [&] {
    if (times > 0) text += before + (times > 1 ? fmt::format(" x{}", times) : "") + "\n";
  };
  for (const char c : tree) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line != before) {
      flush();
      before = line;
      times = 0;
    }
    ++times;
    line.clear();
  }
  flush();
  return text;
}

std::string ranges_of_a_step(const Config& config, int earlier_steps) {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  REQUIRE(library != nullptr);
  const auto begin = reinterpret_cast<void (*)()>(dlsym(library, "nvtx_ranges_begin"));
  const auto end = reinterpret_cast<const char* (*)()>(dlsym(library, "nvtx_ranges_end"));
  std::string tree;
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    for (int i = 0; i < earlier_steps; ++i) step(rank);
    begin();
    rank.train_step();
    tree = end();
    rank.finish_steps();
    while (rank.next_metrics()) {
    }
  });
  dlclose(library);
  return folded(tree);
}

std::string expected(const std::string& kind) {
  return read_file(DGC_SOURCE_DIR "/tests/fake_cuda/ranges/" + kind + ".txt");
}

const std::vector<std::string> kOnGpu = {"device=cuda:0", "workers_per_rank=1"};

std::vector<std::string> on_gpu_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = kOnGpu;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("a profiler sees the phases of a step that trains, its layers by name and their kernels") {
  REQUIRE(kInjected);
  const Gpu gpu;
  SECTION("layers") { CHECK(ranges_of_a_step(tiny_config(kOnGpu), 0) == expected("layers")); }
  SECTION("ResNet") {
    const auto overrides = on_gpu_with({R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 4})", kSgd});
    CHECK(ranges_of_a_step(tiny_config(overrides), 0) == expected("resnet"));
  }
  SECTION("text") {
    const TinyText text;
    CHECK(ranges_of_a_step(text.config(kOnGpu), 0) == expected("text"));
  }
  SECTION("speech") {
    const TinySpeech speech;
    CHECK(ranges_of_a_step(speech.config(kOnGpu), 0) == expected("speech"));
  }
  SECTION("a step that is replayed is one range") {
    const std::string replayed = ranges_of_a_step(tiny_config(on_gpu_with({kSgd})), 4);
    CHECK(replayed.find("recorded\n") != std::string::npos);
    CHECK(replayed.find("worker") == std::string::npos);
  }
}
