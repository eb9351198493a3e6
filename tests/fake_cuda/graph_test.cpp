// src/kernels/cuda/graph.cpp: steps that are recorded and replayed.
#include <catch.hpp>

#include "kernels/cuda/graphs.h"
#include "tensor/errors.h"
#include "tests/fake_cuda/support.h"
#include "tests/kernels/on_device.h"

using namespace dgc;
using namespace dgc::test;

namespace {

std::unique_ptr<Backend> gpu_backend() { return make_cuda_backend(0, Fp32Math::exact); }

// A body that adds one to a number, and counts how often it is called to be run or recorded.
struct Counted {
  explicit Counted(Backend& on) : backend(on), one(on, {1}), number(on, {0}) {}
  void take(uint64_t key) {
    backend.run_recorded({key}, [&] {
      ++calls;
      backend.add(one, number);
    });
  }
  std::vector<float> sum() const { return number.host(); }

  Backend& backend;
  OnDevice one, number;
  int calls = 0;
};

}  // namespace

TEST_CASE("a recorded body runs twice, is called once more to be recorded, and is replayed from then on") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 9))});
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1, 2, 3}), y(*backend, {0, 0, 0});
  int calls = 0;
  for (int step = 1; step <= 8; ++step) {
    backend->run_recorded({1}, [&] {
      ++calls;
      backend->add(x, y);
    });
    const auto n = static_cast<float>(step);
    CHECK(y.host() == std::vector<float>{n, 2 * n, 3 * n});
    CHECK(calls == std::min(step, 3));
  }
  backend->run_recorded({2}, [&] { ++calls; });
  CHECK(calls == 4);
}

TEST_CASE("a step is recorded again after an allocation") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  int calls = 0;
  const auto step = [&] {
    backend->run_recorded({1}, [&] {
      ++calls;
      backend->add(x, y);
    });
  };
  for (int i = 0; i < 4; ++i) step();
  CHECK(calls == 3);
  const Buffer more(backend->device(), 8);
  step();
  CHECK(calls == 4);
  step();
  CHECK(calls == 4);
  CHECK(y.host() == std::vector<float>{6});
}

TEST_CASE("all numbers of a key tell recordings apart") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice one(*backend, {1}), ten(*backend, {10}), y(*backend, {0});
  for (int i = 0; i < 5; ++i) {
    backend->run_recorded({1, 2}, [&] { backend->add(one, y); });
    backend->run_recorded({1, 3}, [&] { backend->add(ten, y); });
  }
  CHECK(y.host() == std::vector<float>{55});
}

TEST_CASE("recordings in use are kept, and where there are as many as may be, further bodies run as they are") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  int calls = 0, steps = 0;
  const auto step = [&](uint64_t key) {
    backend->run_recorded({key}, [&] {
      ++calls;
      backend->add(x, y);
    });
    ++steps;
  };
  constexpr auto kMost = static_cast<uint64_t>(cuda::Graphs::kMost);
  for (uint64_t key = 0; key < kMost; ++key) {
    for (int i = 0; i < 4; ++i) step(key);
  }
  CHECK(calls == 3 * static_cast<int>(kMost));
  calls = 0;
  for (int i = 0; i < 6; ++i) step(kMost);
  CHECK(calls == 6);
  for (uint64_t key = 0; key < kMost; ++key) step(key);
  CHECK(calls == 6);
  // A body that other ranks record is recorded here too.
  for (int i = 0; i < 6; ++i, ++steps) {
    backend->run_recorded_together({kMost + 1}, [&] {
      ++calls;
      backend->add(x, y);
    });
  }
  CHECK(calls == 6 + 3);
  calls = 6;
  // All but one fall out of use, so the new one is recorded.
  for (uint64_t i = 0; i < cuda::Graphs::kInUse; ++i) step(0);
  CHECK(calls == 6);
  for (int i = 0; i < 4; ++i) step(kMost);
  CHECK(calls == 6 + 1);
  step(1);  // forgotten
  CHECK(calls == 6 + 1 + 1);
  CHECK(y.host() == std::vector<float>{static_cast<float>(steps)});
}

TEST_CASE("graphs take a share of a GPU's memory, which lanes share, and what finds no room runs as it is") {
  // A body of so many nodes, of which three find room.
  constexpr int kNodes = 100, kGraphs = 3;
  const Gpu gpu({.memory = cuda::Graphs::kShareOfMemory * cuda::Graphs::kNodeBytes * (kGraphs * kNodes + kNodes / 2)});
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  int calls = 0, steps = 0;
  const auto body = [&](Backend& on) {
    ++calls;
    for (int i = 0; i < kNodes; ++i) on.add(x, y);
  };
  const auto take = [&](uint64_t key, int times) {
    calls = 0;
    for (int i = 0; i < times; ++i) backend->run_recorded({key}, [&] { body(*backend); });
    steps += times;
    return calls;
  };
  const size_t before = fake_cuda::alive().graphs;
  CHECK(take(0, 6) == 3);
  CHECK(take(1, 6) == 3);
  SECTION("of one backend") {
    CHECK(take(2, 6) == 3);
    CHECK(take(3, 6) == 7);  // once more, to find out how large it is
    CHECK(take(3, 6) == 6);
    CHECK(fake_cuda::alive().graphs == before + kGraphs);
    // Recording anew takes no second place.
    const Buffer more(backend->device(), 8);
    CHECK(take(2, 3) == 1);
    CHECK(take(3, 2) == 2);
  }
  SECTION("of a lane") {
    const auto lane = backend->make_lane();
    for (int i = 0; i < 6; ++i, ++steps) {
      lane->post([&] { lane->backend().run_recorded({1}, [&] { body(lane->backend()); }); });
    }
    lane->drain();
    CHECK(take(2, 6) == 7);
  }
  CHECK(y.host() == std::vector<float>{static_cast<float>(steps * kNodes)});
}

TEST_CASE("where the GPU has no memory left for a graph, the body runs as it is") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  Counted body(*backend);
  fake_cuda::fail(0);  // counts calls from here
  for (int i = 0; i < 5; ++i) body.take(1);
  CHECK(body.calls == 3);
  const std::string call = GENERATE("cudaGraphInstantiate", "cudaGraphLaunch");
  CAPTURE(call);
  for (const auto& [site, times] : fake_cuda::call_sites()) {
    if (site.call == call) fake_cuda::fail_at(site, 1);
  }
  body.calls = 0;
  for (int i = 0; i < 5; ++i) body.take(2);
  CHECK(fake_cuda::failed_call() == call);
  CHECK(body.calls == 6);  // in the third step once to be recorded, and once as it is; from then on nothing is tried
  for (int i = 0; i < 5; ++i) body.take(1);
  CHECK(body.calls == 6);
  CHECK(body.sum() == std::vector<float>{15});
}

TEST_CASE("graphs leave free memory for what has not been allocated yet") {
  const size_t memory = size_t{1} << 30;
  const Gpu gpu({.memory = memory});
  const auto backend = gpu_backend();
  Counted body(*backend);
  {
    const Buffer nearly_all(backend->device(), memory - memory / 33);
    for (int i = 0; i < 5; ++i) body.take(1);
    CHECK(body.calls == 5);
  }
  for (int i = 0; i < 5; ++i) body.take(1);
  CHECK(body.calls == 6);
  CHECK(body.sum() == std::vector<float>{10});
}

TEST_CASE("a body that ranks record together fails where the GPU has no memory left for its graph") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  const auto take = [&](uint64_t key) { backend->run_recorded_together({key}, [&] { backend->add(x, y); }); };
  fake_cuda::fail(0);  // counts calls from here
  for (int i = 0; i < 5; ++i) take(1);
  for (const auto& [site, times] : fake_cuda::call_sites()) {
    if (std::string(site.call) == "cudaGraphInstantiate") fake_cuda::fail_at(site, 1);
  }
  take(2);
  take(2);
  CHECK_THROWS_WITH(take(2), Catch::StartsWith("out of memory on cuda:0: there is none left for a recording"));
  CHECK(y.host() == std::vector<float>{7});
}

TEST_CASE("a body that fails while it is recorded leaves a backend that goes on") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  int calls = 0;
  const auto step = [&] {
    backend->run_recorded({1}, [&] {
      backend->add(x, y);
      if (++calls == 3) throw InternalError("in the third call");
    });
  };
  step();
  step();
  CHECK_THROWS_WITH(step(), "in the third call");
  step();
  CHECK(calls == 4);
  CHECK(y.host() == std::vector<float>{3});
}

TEST_CASE("what allocates or waits while it is recorded fails and says where") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1});
  int calls = 0;
  const auto steps = [&](const std::function<void()>& third) {
    for (int i = 0; i < 3; ++i) {
      backend->run_recorded({1}, [&] {
        if (++calls == 3) third();
      });
    }
  };
  SECTION("an allocation") {
    CHECK_THROWS_WITH(steps([&] { const Buffer more(backend->device(), 8); }),
                      Catch::Contains("cudaMalloc: ") && Catch::Contains("cudaErrorStreamCaptureUnsupported"));
  }
  SECTION("a result that is read") {
    float got = 0;
    CHECK_THROWS_WITH(steps([&] { backend->device()->copy_out(&got, x.view().data, 4); }),
                      Catch::Contains("cudaErrorStreamCaptureUnsupported"));
  }
  CHECK(x.host() == std::vector<float>{1});
}

TEST_CASE("work of a lane is recorded with the step that posts it") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 17))});
  const auto backend = gpu_backend();
  const auto lane = backend->make_lane();
  const OnDevice x(*backend, {1, 2}), y(*backend, {0, 0}), z(*backend, {0, 0});
  for (int step = 1; step <= 6; ++step) {
    backend->run_recorded({1}, [&] {
      backend->add(x, y);
      lane->post([&] { lane->backend().add(y, z); });
      lane->drain();
      backend->add(x, y);
    });
  }
  // y is 1, 3, 5 ... where the lane adds it.
  CHECK(y.host() == std::vector<float>{12, 24});
  CHECK(z.host() == std::vector<float>{36, 72});
}

TEST_CASE("a lane's task that fails while a step is recorded is the step's failure") {
  const Gpu gpu;
  const auto backend = gpu_backend();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  {
    const auto lane = backend->make_lane();
    int calls = 0;
    const auto step = [&] {
      backend->run_recorded({1}, [&] {
        lane->post([&] {
          lane->backend().add(x, y);
          if (++calls == 3) throw InternalError("a broken task");
        });
        lane->drain();
      });
    };
    step();
    step();
    CHECK_THROWS_WITH(step(), "a broken task");
  }
  CHECK(y.host() == std::vector<float>{2});
  backend->add(x, y);
  CHECK(y.host() == std::vector<float>{3});
}
