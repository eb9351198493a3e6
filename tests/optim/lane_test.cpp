#include "optim/lane.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "kernels/cpu/cpu_backend.h"
#include "tensor/errors.h"

using namespace dgc;

namespace {

std::unique_ptr<Backend> owner() { return make_cpu_backend(1); }

}  // namespace

TEST_CASE("a lane does what it is handed, in order, on one thread that is not its owner's", "[optim]") {
  const auto backend = owner();
  Lane lane(*backend);
  CHECK(&lane.backend() != backend.get());
  CHECK(lane.backend().device() == backend->device());
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      lane.post([&, round, i] {
        order.push_back(50 * round + i);
        threads.push_back(std::this_thread::get_id());
      });
    }
    lane.drain();
    REQUIRE(order.size() == 50 * (static_cast<size_t>(round) + 1));
  }
  for (int i = 0; i < 150; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  for (const std::thread::id id : threads) CHECK((id == threads[0] && id != std::this_thread::get_id()));
}

TEST_CASE("a lane is at work while its owner is", "[optim]") {
  const auto backend = owner();
  Lane lane(*backend);
  std::promise<void> from_task, to_task;
  lane.post([&] {
    from_task.set_value();
    to_task.get_future().wait();
  });
  from_task.get_future().wait();  // it has begun, and nobody has waited for it
  to_task.set_value();
  lane.drain();
  lane.drain();  // nothing to do
  CHECK(lane.hidden_seconds() > 0);
  CHECK(lane.hidden_seconds() <= lane.busy_seconds());
}

TEST_CASE("what a task throws comes out of drain(), and nothing behind it is done", "[optim]") {
  const auto backend = owner();
  Lane lane(*backend);
  std::atomic<int> done = 0;
  lane.post([&] { ++done; });
  lane.post([] { throw InternalError("a broken task"); });
  lane.post([&] { ++done; });
  CHECK_THROWS_WITH(lane.drain(), Catch::Contains("a broken task"));
  lane.post([&] { ++done; });
  CHECK_THROWS_WITH(lane.drain(), Catch::Contains("a broken task"));
  CHECK(done == 1);
}

TEST_CASE("a lane that ends waits for what it has begun", "[optim]") {
  const auto backend = owner();
  std::promise<void> from_task, to_task;
  bool done = false;
  auto lane = std::make_unique<Lane>(*backend);
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

TEST_CASE("a backend with nothing to run beside it has no lane", "[optim]") {
  struct Alone : CpuBackend {
    Alone() : CpuBackend(1) {}
    std::unique_ptr<Backend> make_beside() const override { return nullptr; }
  };
  const Alone backend;
  CHECK_THROWS_AS(Lane(backend), InternalError);
}
