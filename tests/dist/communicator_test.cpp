#include "dist/communicator.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <catch.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <system_error>
#include <thread>

#include "tensor/errors.h"
#include "tests/dist/collectives.h"
#include "tests/support/wrapped_device.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

constexpr int kAnyNumber = -1;
std::atomic<int> threads_to_start = kAnyNumber;  // before the system says that there may be no more

}  // namespace

// In place of the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept {
  if (threads_to_start == 0) return EAGAIN;
  if (threads_to_start > 0) --threads_to_start;
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, body, argument);
}

namespace {

std::vector<std::unique_ptr<Communicator>> make_group(int ranks) {
  if (ranks > 0) return make_thread_communicators(ranks);
  std::vector<std::unique_ptr<Communicator>> one;
  one.push_back(make_single_communicator());
  return one;
}

// A device that breaks in the middle of an exchange, as a GPU can.
class BrokenDevice final : public Device {
 public:
  explicit BrokenDevice(int good_copies) : good_copies_(good_copies) {}
  std::string name() const override { return "broken"; }
  std::string bus_address() const override { return ""; }
  bool on_host() const override { return true; }
  void* allocate(size_t bytes) override { return cpu_->allocate(bytes); }
  void free(void* memory, size_t bytes) noexcept override { cpu_->free(memory, bytes); }
  bool queues() const override { return false; }
  void copy_in(void* to, const void* from, size_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, size_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override {
    if (good_copies_-- == 0) throw std::runtime_error("the device fell off the bus");
    cpu_->copy(to, from, bytes);
  }
  void zero(void* memory, size_t bytes) override { cpu_->zero(memory, bytes); }
  void synchronize() override {}
  std::unique_ptr<Upload> make_upload(size_t bytes) override { return cpu_->make_upload(bytes); }
  std::unique_ptr<Download> make_download(size_t bytes) override { return cpu_->make_download(bytes); }
  std::unique_ptr<HostMemory> make_host_memory(size_t bytes) override { return cpu_->make_host_memory(bytes); }
  std::unique_ptr<Stopwatch> make_stopwatch() override { return cpu_->make_stopwatch(); }
  size_t peak_bytes() const override { return cpu_->peak_bytes(); }

 private:
  std::shared_ptr<Device> cpu_ = make_cpu_device();
  int good_copies_;
};

}  // namespace

TEST_CASE("a rank that exchanges nothing for a while can ask whether another one has failed") {
  const auto group = make_thread_communicators(2);
  CHECK_NOTHROW(group[1]->check());
  group[0]->abort("the disk is full");
  CHECK_THROWS_WITH(group[1]->check(), "rank 0 failed: the disk is full");
}

TEST_CASE("all_gather puts the parts in rank order", "[communicator]") {
  const int ranks = GENERATE(0, 1, 2, 3, 7);  // 0: the single communicator
  const size_t count = GENERATE(size_t{0}, size_t{1}, size_t{1000});
  CAPTURE(ranks, count);
  const auto group = make_group(ranks);
  std::atomic<int> wrong = 0;
  run_ranks(group, [&](Communicator& c) { wrong += wrong_in_all_gather(c, make_cpu_device(), count); });
  CHECK(wrong == 0);
}

TEST_CASE("all_gather_host does the same from host memory", "[communicator]") {
  const int ranks = GENERATE(0, 1, 3);
  const size_t count = GENERATE(size_t{0}, size_t{1}, size_t{100});
  CAPTURE(ranks, count);
  const auto group = make_group(ranks);
  std::atomic<int> wrong = 0;
  run_ranks(group, [&](Communicator& c) { wrong += wrong_in_all_gather_host(c, make_cpu_device(), count); });
  CHECK(wrong == 0);
}

TEST_CASE("shards cover everything, start on cache lines and are all of one size", "[communicator]") {
  CHECK(shard_size(0, 3) == 0);
  CHECK(shard_size(1, 1) == 16);
  CHECK(shard_size(16, 1) == 16);
  CHECK(shard_size(17, 1) == 32);
  CHECK(shard_size(33, 2) == 32);  // 17 each, rounded up: the second shard holds one element
  CHECK(shard_size(1000, 7) == 144);
  CHECK(shard_size(5, 100) == 16);  // most ranks have none
}

TEST_CASE("gather_shards brings each rank its shard of all workers in worker order", "[communicator]") {
  const size_t n =
      GENERATE(size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{191}, size_t{193}, size_t{1000});
  for (const int ranks : {0, 1, 2, 3, 4, 6, 12}) {
    CAPTURE(ranks, n);
    const auto group = make_group(ranks);
    std::atomic<int> wrong = 0;
    run_ranks(group, [&](Communicator& c) { wrong += wrong_in_gather_shards(c, make_cpu_device(), n); });
    CHECK(wrong == 0);
  }
}

TEST_CASE("ranks split off talk among themselves", "[communicator]") {
  for (const int ranks : {0, 1, 2, 6}) {
    CAPTURE(ranks);
    const auto group = make_group(ranks);
    std::atomic<int> wrong = 0;
    run_ranks(group, [&](Communicator& c) { wrong += wrong_in_parts(c, make_cpu_device()); });
    CHECK(wrong == 0);
  }
}

TEST_CASE("letters come whole, in order and from whom they say", "[communicator]") {
  const int ranks = GENERATE(1, 2, 5);
  const auto group = make_thread_communicators(ranks);
  std::atomic<int> wrong = 0;
  run_ranks(group, [&](Communicator& c) { wrong += wrong_in_mail(c, make_cpu_device()); });
  CHECK(wrong == 0);
  CHECK(make_single_communicator()->mail() == nullptr);
}

TEST_CASE("a rank that fails ends those that wait for its letters", "[communicator]") {
  const auto group = make_thread_communicators(3);
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& c) {
    if (c.rank() == 1) throw_user_error("the disk is full");
    try {
      while (!c.mail()->take(1)) std::this_thread::yield();
    } catch (const PeerFailed& error) {
      told += error.what() == std::string("rank 1 failed: the disk is full");
      c.mail()->post(1, std::make_shared<const std::vector<std::byte>>());  // throws again
      ++told;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), "the disk is full");
  CHECK(told == 2);
}

TEST_CASE("a rank that fails ends those that wait in a part, its own or another", "[communicator]") {
  const auto group = make_thread_communicators(4);
  const int failing = GENERATE(0, 3);
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& c) {
    const auto device = make_cpu_device();
    const auto part = c.split({c.rank() / 2 * 2, 2});
    try {
      for (int round = 0;; ++round) {
        if (c.rank() == failing && round == 3) throw_user_error("the disk is full");
        part->barrier(*device);
      }
    } catch (const PeerFailed& error) {
      told += error.what() == fmt::format("rank {} failed: the disk is full", failing);
      c.split({c.rank() % 2, 2, 2})->barrier(*device);  // also what was made later: throws again
      ++told;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), "the disk is full");
  CHECK(told == 3);
}

TEST_CASE("a part's split is of the part, and nobody joins others' parts", "[communicator]") {
  const auto group = make_thread_communicators(4);
  const auto odd = group[3]->split({1, 2, 2});
  CHECK((odd->rank() == 1 && odd->split({1, 1})->size() == 1));
  CHECK_THROWS_AS(group[3]->split({0, 3}), InternalError);
  CHECK_THROWS_AS(group[3]->split({3, 2}), InternalError);
  CHECK_THROWS_AS(odd->split({0, 1}), InternalError);
  CHECK_THROWS_AS(make_single_communicator()->split({1, 1}), InternalError);
}

TEST_CASE("a single rank and threads say what they are", "[communicator]") {
  const auto single = make_single_communicator();
  CHECK((single->name() == "single" && single->size() == 1 && single->rank() == 0 && single->recordable()));
  const auto threads = make_thread_communicators(2);
  CHECK((threads[1]->name() == "threads" && threads[1]->size() == 2 && threads[1]->rank() == 1));
  CHECK_FALSE(threads[1]->recordable());
}

TEST_CASE("a rank that fails ends the others, which say who it was", "[communicator]") {
  const auto group = make_thread_communicators(4);
  const int failing = GENERATE(0, 3);
  const int where = GENERATE(0, 1, 2);
  CAPTURE(failing, where);
  std::atomic<int> told = 0, survived = 0;
  const auto body = [&](Communicator& c) {
    const auto device = make_cpu_device();
    const Buffer x(device, 4000), y(device, 16000);
    const float* workers[] = {x.f32()};
    try {
      for (int round = 0; round < 10; ++round) {
        if (c.rank() == failing && round == 5) throw_user_error("the disk is full");
        if (where == 0) c.all_gather(*device, x.data(), y.data(), x.bytes());
        if (where == 1) c.gather_shards(*device, workers, y.f32(), 1000);
        if (where == 2) c.barrier(*device);
      }
    } catch (const PeerFailed& error) {
      told += error.what() == fmt::format("rank {} failed: the disk is full", failing);
      c.barrier(*device);  // throws again: a failed group stays so
      ++survived;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), "the disk is full");
  CHECK(told == 3);
  CHECK(survived == 0);
}

TEST_CASE("a rank that finds damage from a peer ends the others, which have found none", "[communicator]") {
  const auto group = make_thread_communicators(3);
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& c) {
    if (c.rank() == 1) throw PeerFailed("the message of rank 2 is damaged");
    try {
      c.barrier(*make_cpu_device());
    } catch (const PeerFailed& error) {
      told += error.what() == std::string("rank 1 failed: the message of rank 2 is damaged");
      throw;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), Contains("the message of rank 2 is damaged"));
  CHECK(told == 2);
}

TEST_CASE("a rank whose thread the system does not start ends those that have started", "[communicator]") {
  const auto group = make_thread_communicators(3);
  const auto device = make_cpu_device();
  threads_to_start = 2;
  const auto body = [&](Communicator& c) { c.barrier(*device); };
  CHECK_THROWS_AS(run_ranks(group, body), std::system_error);
  threads_to_start = kAnyNumber;
}

TEST_CASE("a device that breaks while it reads from others ends the run and hangs nobody", "[communicator]") {
  const auto group = make_thread_communicators(3);
  const int good = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(good);
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& c) {
    const auto device = c.rank() == 1 ? std::make_shared<BrokenDevice>(good) : make_cpu_device();
    const Buffer x(device, 4000), y(device, 12000);
    try {
      for (int round = 0; round < 5; ++round) c.all_gather(*device, x.data(), y.data(), x.bytes());
    } catch (const PeerFailed& error) {
      told += error.what() == std::string("rank 1 failed: the device fell off the bus");
      throw;
    }
  };
  CHECK_THROWS_WITH(run_ranks(group, body), "the device fell off the bus");
  CHECK(told == 2);
}

namespace {

// A device that is slow to read from others.
class SlowDevice final : public WrappedDevice {
 public:
  explicit SlowDevice(std::function<void()> read) : read_(std::move(read)) {}
  void copy(void* to, const void* from, size_t bytes) override {
    read_();
    WrappedDevice::copy(to, from, bytes);
  }

 private:
  std::function<void()> read_;
};

}  // namespace

TEST_CASE("a rank whose device breaks, or that another ends, keeps its memory while others read it", "[communicator]") {
  const auto group = make_thread_communicators(3);
  const bool breaks = GENERATE(true, false);
  CAPTURE(breaks);
  std::atomic<int> to_read = 2;
  std::atomic<bool> reads = false, failed = false;
  int left_to_read = -1;
  const auto slowly = [&] {
    reads = true;
    while (!breaks && !failed) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    --to_read;
  };
  const auto body = [&](Communicator& c) {
    if (c.rank() == 2) {
      if (breaks) return;
      while (!reads) std::this_thread::yield();
      c.abort("the disk is full");
      failed = true;
      return;
    }
    const auto part = c.split({0, 2, 1});
    std::shared_ptr<Device> device = make_cpu_device();
    if (c.rank() == 1) device = std::make_shared<SlowDevice>(slowly);
    if (c.rank() == 0 && breaks) device = std::make_shared<BrokenDevice>(0);
    const Buffer x(device, 4000), y(device, 8000);
    try {
      part->all_gather(*device, x.data(), y.data(), x.bytes());
    } catch (const std::exception&) {
      if (c.rank() == 0) left_to_read = to_read;
      throw;
    }
    if (c.rank() == 0) left_to_read = to_read;
  };
  try {
    run_ranks(group, body);
  } catch (const std::exception&) {  // the device's
  }
  CHECK(left_to_read == 0);
}

TEST_CASE("ranks that disagree about sizes find out", "[communicator]") {
  const auto group = make_thread_communicators(2);
  const int what = GENERATE(0, 1, 2);
  CHECK_THROWS_AS(run_ranks(group, [&](Communicator& c) { disagree(c, make_cpu_device(), what); }), InternalError);
}
