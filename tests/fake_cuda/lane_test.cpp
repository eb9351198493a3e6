// What makes work of a lane overlap with its owner's on a GPU, and what no result shows.
#include <catch.hpp>

#include "kernels/backend.h"
#include "tests/fake_cuda/support.h"
#include "tests/kernels/dgc_case.h"
#include "tests/kernels/on_device.h"

using namespace dgc;
using namespace dgc::test;

TEST_CASE("work of a lane goes before its owner's, also in a recording, and that of a worker beside it does not") {
  const Gpu gpu;
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  const auto first = backend->make_lane();
  const auto beside = backend->make_lanes(1);
  const OnDevice x(*backend, {1}), y(*backend, {0});
  const size_t replayed = fake_cuda::executed("cudaGraphLaunch");
  const auto priority_on = [&](Lane& lane, uint64_t key) {
    backend->run_recorded({key}, [&] {
      lane.post([&] { lane.backend().add(x, y); });
      lane.drain();
    });
    backend->device()->synchronize();
    return fake_cuda::last_execution("add").priority;
  };
  for (int step = 0; step < 4; ++step) {
    CHECK(priority_on(*first, 1) == fake_cuda::kHighestPriority);
    CHECK(priority_on(*beside[0], 2) == 0);
  }
  CHECK(fake_cuda::executed("cudaGraphLaunch") - replayed == 4);
}

TEST_CASE("a lane compresses with a block on each multiprocessor, which leaves room for what its owner computes") {
  const Gpu gpu({.multiprocessors = 3, .most_blocks = 2});
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  const auto lane = backend->make_lane();
  const auto blocks_on = [](Backend& on) {
    DgcCase work({{100000, 100}});
    work.g = random_floats(static_cast<int64_t>(work.g.size()), 1);
    compress(on, work, {});
    return fake_cuda::last_execution("dgc_compress").blocks;
  };
  CHECK(blocks_on(*backend) == 6);
  CHECK(blocks_on(lane->backend()) == 3);
}
