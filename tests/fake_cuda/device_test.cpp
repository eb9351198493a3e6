// src/tensor/device_cuda*.cpp on the fake runtime.
#include <cuda_runtime.h>

#include <catch.hpp>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/backend.h"
#include "tensor/device_cuda.h"
#include "tensor/errors.h"
#include "tests/fake_cuda/support.h"
#include "train/ranks/rank_backend.h"

using namespace dgc;
using namespace dgc::test;

namespace {

std::vector<float> counted(size_t n, float from) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), from);
  return values;
}

std::vector<float> read(Device& device, const void* memory, size_t n) {
  std::vector<float> values(n);
  device.copy_out(values.data(), memory, n * sizeof(float));
  return values;
}

}  // namespace

TEST_CASE("trainings at once share GPUs where there are fewer, or where they all name one") {
  const Gpu gpu({.devices = 2});
  Config config;
  config.device = "auto";
  CHECK_FALSE(share_gpus(config, 2));
  CHECK(share_gpus(config, 3));
  config.device = "cuda:1";
  CHECK_FALSE(share_gpus(config, 1));
  CHECK(share_gpus(config, 2));
  config.device = "cpu";
  CHECK_FALSE(share_gpus(config, 3));
}

TEST_CASE("the GPUs of a machine are described, or what is missing") {
  SECTION("there are two") {
    const Gpu gpu({.devices = 2});
    CHECK(cuda_devices() == std::vector{0, 1});
    CHECK_THAT(cuda_description(), Catch::Contains("cuda:1 Fake H100, compute capability 9.0, 4.0 GiB") &&
                                       Catch::Contains("driver for CUDA 13.0"));
    CHECK_THROWS_WITH(CudaDevice(2), Catch::StartsWith("device: 'cuda:2' is not available: cuda:0 Fake H100"));
  }
  SECTION("there is no driver") {
    const Gpu gpu({.driver = 0});
    CHECK(cuda_devices().empty());
    CHECK_THROWS_WITH(CudaDevice(0), "device: 'cuda:0' is not available: no NVIDIA driver");
  }
  SECTION("the driver is older than the runtime") {
    const Gpu gpu({.driver = 11080});
    CHECK_THAT(cuda_description(), Catch::StartsWith("the NVIDIA driver is for CUDA 11.8, this build for 1"));
  }
  SECTION("there is no GPU") {
    const Gpu gpu({.devices = 0});
    CHECK_THAT(cuda_description(), Catch::Contains("no GPU that it may use"));
  }
  SECTION("the first GPU is too old") {  // CUDA_DEVICE_ORDER=PCI_BUS_ID
    const Gpu gpu({.devices = 2, .old_devices = 1});
    CHECK(cuda_devices() == std::vector{1});
    CHECK(make_backend("auto", 1)->device()->name() == "cuda:1");
    CHECK_THROWS_WITH(CudaDevice(0), Catch::StartsWith("device: 'cuda:0' is not available: cuda:1 Fake H100") &&
                                         Catch::Contains("; cuda:0 Fake H100, compute capability 7.0, 4.0 GiB is too "
                                                         "old: compute capability 8.0 is needed"));
  }
  SECTION("the GPU is too old") {
    const Gpu gpu({.major = 7});
    CHECK_THAT(cuda_description(), Catch::Contains("is too old: compute capability 8.0 is needed"));
  }
  SECTION("the driver is ill") {
    const Gpu gpu;
    fake_cuda::fail(1);
    CHECK(cuda_description() == "the NVIDIA driver says: cudaErrorUnknown");
  }
}

TEST_CASE("a GPU, or a driver, for which the program was not compiled is the user's to mend") {
  const auto error = GENERATE(cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion);
  CHECK_THROWS_AS(check_cuda(error, "cudaLaunchKernelExC"), UserError);
  CHECK_THROWS_WITH(check_cuda(error, "cudaLaunchKernelExC"), Catch::Contains("CUDAARCHS=native"));
}

TEST_CASE("a fault of a kernel says how it is found, and another error does not") {
  CHECK_THROWS_WITH(check_cuda(cudaErrorIllegalAddress, "cudaGraphLaunch"),
                    Catch::EndsWith("(cudaErrorIllegalAddress); the fault is in a kernel queued before it, which the "
                                    "same command behind \"compute-sanitizer --tool memcheck\" will find"));
  CHECK_THROWS_WITH(check_cuda(cudaErrorUnknown, "cudaGraphLaunch"), Catch::EndsWith("(cudaErrorUnknown)"));
}

TEST_CASE("memory of a GPU starts as zeros, and copies reach exactly the bytes asked for") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 9))});
  const auto device = std::make_shared<CudaDevice>(0);
  const Buffer buffer(device, 5 * sizeof(float)), other(device, 5 * sizeof(float));
  CHECK(read(*device, buffer.data(), 5) == std::vector<float>(5));
  const std::vector<float> in = {1, 2, 3, 4, 5};
  device->copy_in(buffer.data(), in.data(), buffer.bytes());
  device->zero(buffer.f32() + 1, 2 * sizeof(float));
  device->copy(other.data(), buffer.data(), buffer.bytes());
  CHECK(read(*device, other.data(), 5) == std::vector<float>{1, 0, 0, 4, 5});
  CHECK(device->peak_bytes() == 40);
  CHECK(device->allocations() == 2);
}

TEST_CASE("memory that a GPU does not have is the user's error, with its size") {
  const Gpu gpu({.memory = size_t{8} << 20});
  const auto device = std::make_shared<CudaDevice>(0);
  const Buffer half(device, size_t{4} << 20);
  CHECK_THROWS_WITH(Buffer(device, size_t{6} << 20),
                    "out of memory on cuda:0: 6.0 MiB more are needed, 4.0 MiB of 0.0 GiB are free");
  CHECK_NOTHROW(Buffer(device, size_t{4} << 20));
}

TEST_CASE("a GPU that is full or busy is the user's matter, and any other failure is not") {
  CHECK_THROWS_WITH(check_cuda(cudaErrorMemoryAllocation, "a_kernel"),
                    Catch::StartsWith("out of memory on the GPU, in a_kernel; nvidia-smi"));
  CHECK_THROWS_AS(check_cuda(cudaErrorDevicesUnavailable, "cudaSetDevice"), UserError);
  CHECK_THROWS_AS(check_cuda(cudaErrorUnknown, "cudaSetDevice"), InternalError);
}

TEST_CASE("batches arrive in their order, each before the work that reads it and after the work on the one before") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 33))});
  const auto device = std::make_shared<CudaDevice>(0);
  constexpr size_t kNumbers = 100;
  constexpr int kBatches = 12;
  const auto upload = device->make_upload(kNumbers * sizeof(float));
  const Buffer seen(device, kBatches * kNumbers * sizeof(float));
  std::vector<float> batch = counted(kNumbers, 0);
  upload->stage(batch.data(), batch.size() * sizeof(float));
  for (int i = 0; i < kBatches; ++i) {
    const void* const there = upload->arrive();
    device->copy(seen.f32() + static_cast<size_t>(i) * kNumbers, there, kNumbers * sizeof(float));
    upload->release();
    batch = counted(kNumbers, static_cast<float>(1000 * (i + 1)));
    upload->stage(batch.data(), batch.size() * sizeof(float));
    batch.assign(kNumbers, -1);  // it may be used again at once
  }
  for (int i = 0; i < kBatches; ++i) {
    CHECK(read(*device, seen.f32() + static_cast<size_t>(i) * kNumbers, kNumbers) ==
          counted(kNumbers, static_cast<float>(1000 * i)));
  }
}

TEST_CASE("a result that is read later is that of its own time") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 17))});
  const auto device = std::make_shared<CudaDevice>(0);
  const auto download = device->make_download(sizeof(float));
  CHECK(download->ready());
  const Buffer number(device, sizeof(float));
  for (float value : {1.f, 2.f, 3.f}) {
    device->copy_in(number.data(), &value, sizeof(value));
    download->start(number.data());
    device->zero(number.data(), number.bytes());
    if (value == 2) {
      while (!download->ready()) {
      }
    }
    float got = 0;
    std::memcpy(&got, download->wait(), sizeof(got));
    CHECK(got == value);
  }
}

TEST_CASE("another stream of a GPU follows the first, and the first follows it") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 17))});
  const auto device = std::make_shared<CudaDevice>(0);
  const auto beside = device->make_beside();
  CHECK(beside->is_same_gpu(*device));
  const Buffer a(device, sizeof(float)), b(device, sizeof(float)), c(device, sizeof(float));
  const float one = 1;
  device->copy_in(a.data(), &one, sizeof(one));
  for (int i = 0; i < 20; ++i) {
    device->copy(b.data(), a.data(), sizeof(float));
    beside->follow(*device);
    beside->copy(c.data(), b.data(), sizeof(float));
    device->follow(*beside);
    device->zero(b.data(), sizeof(float));
    CHECK(read(*device, c.data(), 1) == std::vector<float>{1});
    device->zero(c.data(), sizeof(float));
  }
}

TEST_CASE("a GPU's stopwatch measures between its two points") {
  const Gpu gpu;
  const auto device = std::make_shared<CudaDevice>(0);
  const Buffer memory(device, 4);
  const auto watch = device->make_stopwatch();
  watch->start();
  device->zero(memory.data(), 4);
  watch->stop();
  CHECK(watch->milliseconds() > 0);
}
