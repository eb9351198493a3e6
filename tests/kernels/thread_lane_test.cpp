#include "kernels/cpu/thread_lane.h"

#include <atomic>
#include <catch.hpp>
#include <future>

#include "tensor/errors.h"

using namespace dgc;

TEST_CASE("a lane does what it is handed, in order, on one thread that is not its owner's", "[kernels]") {
  const auto backend = make_cpu_backend(1);
  const auto lane = backend->make_lane();
  CHECK(&lane->backend() != backend.get());
  CHECK(lane->backend().device() == backend->device());
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      lane->post([&, round, i] {
        order.push_back(50 * round + i);
        threads.push_back(std::this_thread::get_id());
      });
    }
    lane->drain();
    REQUIRE(order.size() == 50 * (static_cast<size_t>(round) + 1));
  }
  for (int i = 0; i < 150; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  for (const std::thread::id id : threads) CHECK((id == threads[0] && id != std::this_thread::get_id()));
}

TEST_CASE("a lane is at work while its owner is", "[kernels]") {
  const auto backend = make_cpu_backend(1);
  const auto lane = backend->make_lane();
  std::promise<void> from_task, to_task;
  bool done = false;
  lane->post([&] {
    from_task.set_value();
    to_task.get_future().wait();
    done = true;
  });
  from_task.get_future().wait();  // it has begun, and nobody has waited for it
  to_task.set_value();
  lane->drain();
  CHECK(done);
  lane->drain();  // nothing to do
}

TEST_CASE("what a task throws comes out of drain(), and nothing behind it is done", "[kernels]") {
  const auto backend = make_cpu_backend(1);
  const auto lane = backend->make_lane();
  std::atomic<int> done = 0;
  lane->post([&] { ++done; });
  lane->post([] { throw InternalError("a broken task"); });
  lane->post([&] { ++done; });
  CHECK_THROWS_WITH(lane->drain(), Catch::Contains("a broken task"));
  lane->post([&] { ++done; });
  CHECK_THROWS_WITH(lane->drain(), Catch::Contains("a broken task"));
  CHECK(done == 1);
}

TEST_CASE("a lane that ends waits for what it has begun", "[kernels]") {
  const auto backend = make_cpu_backend(1);
  std::promise<void> from_task, to_task;
  bool done = false;
  auto lane = backend->make_lane();
  lane->post([&] {
    from_task.set_value();
    to_task.get_future().wait();
    done = true;
  });
  from_task.get_future().wait();
  std::thread end([&] { lane.reset(); });
  to_task.set_value();
  end.join();
  CHECK(done);
}

TEST_CASE("a lane whose backend cannot be made is none", "[kernels]") {
  const auto broken = []() -> std::unique_ptr<Backend> { throw InternalError("no such backend"); };
  CHECK_THROWS_WITH(ThreadLane(broken), Catch::Contains("no such backend"));
}
