#pragma once

#include <fmt/format.h>

#include <catch.hpp>
#include <string>

#include "tests/fake_cuda/fake_cuda.h"

namespace dgc::test {

// "device_memory 1, streams 2": what has been made and not destroyed.
inline std::string all_alive() {
  const fake_cuda::Alive a = fake_cuda::alive();
  return fmt::format("device_memory {}, host_memory {}, streams {}, events {}, graphs {}, library_objects {}",
                     a.device_memory, a.host_memory, a.streams, a.events, a.graphs, a.library_objects);
}

// Gives a test options of its own, and the test after it the usual ones. What a test has made and not destroyed fails
// it. Declared first, so that it ends last.
class Gpu {
 public:
  explicit Gpu(const fake_cuda::Options& options = {}) : before_(all_alive()) {
    fake_cuda::revive();
    fake_cuda::set(options);
  }
  ~Gpu() {
    fake_cuda::fail(0);
    fake_cuda::revive();
    fake_cuda::set({});
    CHECK(all_alive() == before_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

 private:
  std::string before_;
};

}  // namespace dgc::test
