#pragma once

#include <catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// A test body that takes one of these through GENERATE(from_range(backends())) runs on every backend that this build
// and machine have, and that is chosen.
struct BackendFactory {
  std::string name;
  std::unique_ptr<Backend> (*make)();
};

// Those that DGC_TEST_BACKENDS names ("cuda", or several with commas), where it is set: under a slow tool such as
// compute-sanitizer one is enough. Where a test has none of them, what stands in their place ends it as skipped.
inline std::vector<BackendFactory> chosen(std::vector<BackendFactory> all) {
  const char* names = std::getenv("DGC_TEST_BACKENDS");
  if (names == nullptr) return all;
  const std::string list = "," + std::string(names) + ",";
  std::erase_if(all, [&](const BackendFactory& b) { return list.find("," + b.name + ",") == std::string::npos; });
  if (!all.empty()) return all;
  return {{"none", []() -> std::unique_ptr<Backend> {
             WARN("skipped: DGC_TEST_BACKENDS=" << std::getenv("DGC_TEST_BACKENDS")
                                                << " names no backend of this test");
             throw Catch::TestFailureException();  // leaves the test, which no assertion has failed
           }}};
}

inline std::vector<BackendFactory> present_backends() {
  std::vector<BackendFactory> all{{"cpu", [] { return make_cpu_backend(2); }}};
  if (!cuda_devices().empty()) {
    all.push_back({"cuda", [] { return make_cuda_backend(cuda_devices().at(0), Fp32Math::exact); }});
  }
  return all;
}

inline std::vector<BackendFactory> backends() { return chosen(present_backends()); }

}  // namespace dgc
