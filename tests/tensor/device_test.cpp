#include "tensor/device.h"

#include <algorithm>
#include <catch.hpp>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/errors.h"

using namespace dgc;

TEST_CASE("device memory is aligned to 64 bytes and starts as zeros", "[tensor]") {
  const auto device = make_cpu_device();
  CHECK(device->name() == "cpu");
  const size_t bytes = GENERATE(1, 63, 64, 65, 100000);
  // Twice, with dirt in between: the allocator likes to hand out what was just freed.
  for (int turn = 0; turn < 2; ++turn) {
    const Buffer buffer(device, bytes);
    REQUIRE(buffer.bytes() == bytes);
    CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 64 == 0);
    const auto* const begin = static_cast<const unsigned char*>(buffer.data());
    CHECK(std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0; }));
    std::memset(buffer.data(), 0xff, bytes);
  }
}

TEST_CASE("an empty buffer is fine", "[tensor]") {
  const auto device = make_cpu_device();
  const Buffer buffer(device, 0);
  CHECK(buffer.bytes() == 0);
  device->copy_in(buffer.data(), nullptr, 0);
  device->copy_out(nullptr, buffer.data(), 0);
  device->zero(buffer.data(), 0);
  CHECK(device->peak_bytes() == 0);
}

TEST_CASE("copies and zero reach exactly the bytes asked for", "[tensor]") {
  const auto device = make_cpu_device();
  const Buffer buffer(device, 5 * sizeof(float));
  const std::vector<float> in = {1, 2, 3, 4, 5};
  device->copy_in(buffer.data(), in.data(), buffer.bytes());
  device->zero(buffer.f32() + 1, 2 * sizeof(float));
  device->synchronize();
  std::vector<float> out(5);
  device->copy_out(out.data(), buffer.data(), buffer.bytes());
  CHECK(out == std::vector<float>{1, 0, 0, 4, 5});
}

TEST_CASE("peak_bytes is the most that was ever allocated at once", "[tensor]") {
  const auto device = make_cpu_device();
  CHECK(device->peak_bytes() == 0);
  {
    const Buffer a(device, 1000);
    { const Buffer b(device, 500); }
    CHECK(device->peak_bytes() == 1500);
    const Buffer c(device, 400);
    CHECK(device->peak_bytes() == 1500);
  }
  const Buffer d(device, 1501);
  CHECK(device->peak_bytes() == 1501);
}

TEST_CASE("moving a buffer moves its memory and frees it once", "[tensor]") {
  const auto device = make_cpu_device();
  Buffer a(device, 100);
  void* const memory = a.data();
  Buffer b(std::move(a));
  CHECK(b.data() == memory);
  CHECK(b.bytes() == 100);
  CHECK(a.data() == nullptr);  // NOLINT(bugprone-use-after-move): what a moved-from buffer is, is the point
  CHECK(a.bytes() == 0);

  Buffer c;
  CHECK(c.data() == nullptr);
  c = std::move(b);
  CHECK(c.data() == memory);
  c = Buffer(device, 50);  // the old 100 bytes go with the temporary
  CHECK(device->peak_bytes() == 150);
  const Buffer other(device, 100);
  CHECK(device->peak_bytes() == 150);
}

TEST_CASE("a buffer keeps its device alive", "[tensor]") {
  auto device = make_cpu_device();
  Buffer buffer(device, 10);
  const std::weak_ptr<Device> watch = device;
  device.reset();
  CHECK_FALSE(watch.expired());
  CHECK(buffer.device().name() == "cpu");
  buffer = Buffer();
  CHECK(watch.expired());
}

TEST_CASE("memory that is not there is the user's error, with its size", "[tensor]") {
#ifndef DGC_SANITIZED
  const size_t petabyte = size_t{1} << 50;
  CHECK_THROWS_WITH(Buffer(make_cpu_device(), petabyte), Catch::Contains("out of memory") && Catch::Contains("MiB") &&
                                                             Catch::Contains("training.batch_per_worker"));
  CHECK_THROWS_AS(Buffer(make_cpu_device(), petabyte), UserError);
#else
  WARN("skipped: the sanitizer ends the program at so large an allocation");
#endif
}

TEST_CASE("a failed check names the condition, the reason and the place", "[tensor]") {
  const int answer = 41;
  CHECK_NOTHROW([&] { DGC_CHECK(answer == 41, "arithmetic"); }());
  CHECK_THROWS_WITH([&] { DGC_CHECK(answer == 42, "the answer is off"); }(), Catch::Contains("the answer is off") &&
                                                                                 Catch::Contains("answer == 42") &&
                                                                                 Catch::Contains("device_test.cpp:"));
  CHECK_THROWS_WITH(throw_user_error("{} of {} is wrong", 2, "x"), "2 of x is wrong");
}
