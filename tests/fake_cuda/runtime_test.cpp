// The fake itself: it must see the mistakes that it is there for.
#include <cuda_runtime.h>

#include <algorithm>
#include <catch.hpp>
#include <cstring>
#include <vector>

#include "tensor/device_cuda.h"
#include "tests/fake_cuda/support.h"

using namespace dgc;
using namespace dgc::test;

namespace {

struct Event {
  Event() { REQUIRE(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming) == cudaSuccess); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t handle = nullptr;
};

// What a copy on one stream finds of what another stream writes, over many seeds.
std::vector<float> found(bool with_event) {
  std::vector<float> all;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Gpu gpu({.seed = seed});
    const auto device = std::make_shared<CudaDevice>(0), beside = device->make_beside();
    const Buffer from(device, sizeof(float)), to(device, sizeof(float));
    device->synchronize();
    const float one = 1;
    beside->copy_in(from.data(), &one, sizeof(one));
    beside->zero(from.data(), sizeof(float));
    if (with_event) device->follow(*beside);
    device->copy(to.data(), from.data(), sizeof(float));
    float got = -1;
    device->copy_out(&got, to.data(), sizeof(got));
    all.push_back(got);
    beside->synchronize();
  }
  return all;
}

}  // namespace

TEST_CASE("a missing event shows") {
  CHECK(std::ranges::count(found(true), 0.f) == 40);
  const std::vector<float> without = found(false);
  CHECK(std::ranges::count(without, 0.f) > 0);
  CHECK(std::ranges::count(without, 1.f) > 0);
}

TEST_CASE("pinned memory that is used again before its copy shows") {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Gpu gpu({.seed = seed});
    const auto device = std::make_shared<CudaDevice>(0);
    const auto host = device->make_host_memory(sizeof(float));
    const Buffer memory(device, sizeof(float));
    const float one = 1, two = 2;
    std::memcpy(host->data(), &one, sizeof(one));
    REQUIRE(cudaMemcpyAsync(memory.data(), host->data(), sizeof(one), cudaMemcpyHostToDevice, device->stream()) ==
            cudaSuccess);
    std::memcpy(host->data(), &two, sizeof(two));
    float got = 0;
    device->copy_out(&got, memory.data(), sizeof(got));
    wrong += got == 2 ? 1 : 0;
  }
  CHECK(wrong > 0);
}

TEST_CASE("copies that leave their memory are refused") {
  const Gpu gpu;
  const auto device = std::make_shared<CudaDevice>(0);
  const Buffer memory(device, 8);
  float numbers[4] = {};
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, 16, kind, device->stream());
  };
  CHECK(copy(memory.data(), numbers, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(copy(numbers, numbers, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(copy(numbers, memory.data(), cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaFree(memory.f32() + 1) == cudaErrorInvalidValue);
}

TEST_CASE("what CUDA does not allow while a stream is captured ends the capture") {
  const Gpu gpu;
  const auto device = std::make_shared<CudaDevice>(0), beside = device->make_beside();
  const Buffer memory(device, 8);
  const Event event, captured;
  REQUIRE(cudaEventRecord(event.handle, beside->stream()) == cudaSuccess);
  float numbers[2] = {};
  REQUIRE(cudaStreamBeginCapture(device->stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(memory.data(), 0, 8, device->stream()) == cudaSuccess);
  cudaGraph_t graph = nullptr;

  SECTION("an allocation") {
    void* more = nullptr;
    CHECK(cudaMalloc(&more, 8) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("giving memory back") {
    void* more = nullptr;
    CHECK(cudaFree(memory.data()) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaMalloc(&more, 8) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("waiting for the stream") {
    CHECK(cudaStreamSynchronize(device->stream()) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("asking for an event") { CHECK(cudaEventQuery(event.handle) == cudaErrorStreamCaptureUnsupported); }
  SECTION("a copy of pageable memory") {
    CHECK(cudaMemcpyAsync(memory.data(), numbers, 8, cudaMemcpyHostToDevice, device->stream()) ==
          cudaErrorStreamCaptureUnsupported);
  }
  SECTION("waiting for work that is not captured") {
    CHECK(cudaStreamWaitEvent(device->stream(), event.handle, 0) == cudaErrorStreamCaptureIsolation);
  }
  CHECK(cudaStreamEndCapture(device->stream(), &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(cudaMemsetAsync(memory.data(), 0, 8, device->stream()) == cudaSuccess);  // the stream is usable again
}

TEST_CASE("a capture ends in a graph, unless a fork of it is not joined") {
  const Gpu gpu;
  const auto device = std::make_shared<CudaDevice>(0), beside = device->make_beside();
  const Buffer memory(device, 8);
  const Event forked, joined;
  const bool joins = GENERATE(true, false);
  REQUIRE(cudaStreamBeginCapture(device->stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(cudaEventRecord(forked.handle, device->stream()) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(beside->stream(), forked.handle, 0) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(memory.data(), 1, 8, beside->stream()) == cudaSuccess);
  REQUIRE(cudaEventRecord(joined.handle, beside->stream()) == cudaSuccess);
  if (joins) REQUIRE(cudaStreamWaitEvent(device->stream(), joined.handle, 0) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(device->stream(), &graph) == (joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
  CHECK((graph != nullptr) == joins);
  if (joins) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}
