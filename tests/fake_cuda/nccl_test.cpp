// src/dist/nccl.cpp on the fake NCCL: what arrives where and when, and what it does when something fails. Whether NCCL
// does as the fake does is for a machine with GPUs to say.
#include <cuda_runtime.h>

#include <catch.hpp>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "dist/communicator.h"
#include "dist/launch/launch.h"
#include "tensor/device_cuda.h"
#include "tensor/errors.h"
#include "tests/dist/collectives.h"
#include "tests/dist/meeting/free_port.h"
#include "tests/fake_cuda/support.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;
using std::chrono::milliseconds;

namespace {

constexpr int kDevices = 6;

struct Connection {
  Communicator& communicator;
  std::shared_ptr<Device> device;
};

// How often the program has called a function of CUDA or NCCL since the test began.
int64_t calls_of(const std::string& name) {
  int64_t calls = 0;
  for (const auto& [site, times] : fake_cuda::call_sites()) calls += site.call == name ? times : 0;
  return calls;
}

// Runs `body` as every rank, in threads. What it threw, by rank; "" for nothing.
template <typename Body>
std::vector<std::string> run_nccl(
    int ranks, const Body& body, milliseconds start_timeout = milliseconds(20000),
    const WhileWaiting& while_waiting = [] {}, int devices = kDevices,
    const std::function<std::optional<std::string>(int rank)>& failure = [](int) { return std::nullopt; }) {
  Launch launch;
  launch.size = ranks;
  launch.meeting.host = "127.0.0.1";
  launch.meeting.port = free_port();
  std::vector<std::string> outcomes(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, launch, rank]() mutable {
      launch.rank = launch.local_rank = rank;
      NcclOptions options;
      options.meeting.timeout = start_timeout;
      options.meeting.while_waiting = [&](const std::string&) { while_waiting(); };
      options.while_waiting = while_waiting;
      options.failure = [&failure, rank] { return failure(rank); };
      std::unique_ptr<Communicator> communicator;
      const auto device = std::make_shared<CudaDevice>(rank % devices);
      std::string& outcome = outcomes[static_cast<size_t>(rank)];
      try {
        communicator = make_nccl_communicator(launch, device, options);
        body(Connection{*communicator, device});
      } catch (const PeerFailed& error) {
        outcome = std::string("peer: ") + error.what();
      } catch (const UserError& error) {
        outcome = std::string("user: ") + error.what();
      } catch (const std::exception& error) {
        if (communicator != nullptr) communicator->abort(error.what());
        outcome = error.what();
      }
    });
  }
  threads.clear();
  return outcomes;
}

}  // namespace

TEST_CASE("NCCL carries parts and shards to where they belong", "[nccl]") {
  const Gpu gpu({.seed = GENERATE(1u, 2u), .devices = kDevices});
  const int ranks = GENERATE(1, 2, 3, 4);
  const size_t n = GENERATE(size_t{0}, size_t{1}, size_t{16}, size_t{17}, size_t{100});
  CAPTURE(ranks, n);
  fake_cuda::fail(0);
  std::atomic<int> wrong = 0;
  const auto outcomes = run_nccl(ranks, [&](const Connection& own) {
    Communicator& c = own.communicator;
    wrong += wrong_in_all_gather(c, own.device, n) + wrong_in_gather_shards(c, own.device, n) +
             wrong_in_all_gather_host(c, own.device, n);
    c.barrier(*own.device);
    c.check();
    wrong += c.name() != "nccl" || !c.recordable() || c.size() != ranks || !c.between_processes();
  });
  CHECK(outcomes == std::vector<std::string>(static_cast<size_t>(ranks)));
  CHECK(wrong == 0);
  CHECK((calls_of("ncclCommFinalize") == ranks && calls_of("ncclCommDestroy") == ranks));
  CHECK(calls_of("ncclCommAbort") == 0);
  CHECK(fake_cuda::last_execution("ncclSend").priority == fake_cuda::kHighestPriority);
}

TEST_CASE("ranks of NCCL talk among themselves, over the one communicator", "[nccl]") {
  const Gpu gpu({.devices = kDevices});
  fake_cuda::fail(0);
  const int ranks = GENERATE(1, 4, 6);
  std::atomic<int> wrong = 0;
  const auto outcomes =
      run_nccl(ranks, [&](const Connection& own) { wrong += wrong_in_parts(own.communicator, own.device); });
  CHECK(outcomes == std::vector<std::string>(static_cast<size_t>(ranks)));
  CHECK(wrong == 0);
  CHECK((calls_of("ncclCommDestroy") == ranks && calls_of("ncclCommAbort") == 0));
}

TEST_CASE("collectives of NCCL come between the work of the stream that asks, beside the others'", "[nccl]") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 17)), .devices = 2});
  std::atomic<int> wrong = 0;
  const auto outcomes = run_nccl(
      2,
      [&](const Connection& own) {
        const auto device = std::dynamic_pointer_cast<CudaDevice>(own.device);
        const auto beside = device->make_beside();
        const Buffer numbers = floats(device, {1, 2}), from(device, 4), to(device, 8), kept(device, 16);
        device->synchronize();
        for (CudaDevice* asks : {device.get(), beside.get()}) {
          asks->copy(from.data(), numbers.f32() + own.communicator.rank(), 4);
          own.communicator.all_gather(*asks, from.data(), to.data(), 4);
          asks->zero(from.data(), 4);
          asks->copy(kept.f32() + (asks == beside.get() ? 2 : 0), to.data(), 8);
          asks->zero(to.data(), 8);
          asks->synchronize();
        }
        wrong += values_of(kept) != std::vector<float>{1, 2, 1, 2};
        CudaDevice other(1 - own.communicator.rank());
        own.communicator.all_gather(other, from.data(), to.data(), 4);
      },
      milliseconds(20000), [] {}, 2);
  CHECK(wrong == 0);
  for (const std::string& outcome : outcomes) {
    CHECK_THAT(outcome, Contains("a communicator of NCCL belongs to one GPU") || Contains("remote process exited"));
  }
}

TEST_CASE("a rank that fails aborts NCCL, and the others say so", "[nccl]") {
  const Gpu gpu({.devices = kDevices, .aborts_spread = true});
  fake_cuda::fail(0);
  const auto outcomes = run_nccl(3, [](const Connection& own) {
    for (int round = 0;; ++round) {
      if (own.communicator.rank() == 1 && round == 2) throw std::runtime_error("the disk is full");
      own.communicator.barrier(*own.device);
    }
  });
  CHECK(outcomes[1] == "the disk is full");
  for (const int other : {0, 2}) {
    CHECK(outcomes[static_cast<size_t>(other)] ==
          fmt::format("peer: rank {}: all_gather failed: remote process exited", other));
  }
  CHECK((calls_of("ncclCommAbort") == 3 && calls_of("ncclCommFinalize") == 0 && calls_of("ncclCommDestroy") == 0));
}

TEST_CASE("an asynchronous error of NCCL is found by check, and the communicator stays unusable", "[nccl]") {
  const Gpu gpu({.devices = kDevices});
  fake_cuda::fail(0);
  std::string later;
  const auto outcomes = run_nccl(1, [&](const Connection& own) {
    own.communicator.barrier(*own.device);
    own.communicator.check();
    fake_cuda::set({.devices = kDevices, .ill_rank = 0});
    try {
      own.communicator.check();
    } catch (const PeerFailed& error) {
      later = error.what();
    }
    own.communicator.barrier(*own.device);
  });
  CHECK(later == "rank 0: all_gather failed: remote process exited");
  CHECK(outcomes[0] == "peer: " + later);
  CHECK((calls_of("ncclCommAbort") == 1 && calls_of("ncclCommDestroy") == 0));
}

TEST_CASE("a failed step ends though recorded graphs still hold the communicator", "[nccl]") {
  const Gpu gpu({.devices = 2, .aborts_spread = true});
  fake_cuda::fail(0);
  const auto outcomes = run_nccl(
      2,
      [](const Connection& own) {
        struct Recording {  // as in a backend, which goes before the communicator does
          explicit Recording(const Connection& rank) : from(rank.device, 4), to(rank.device, 8) {
            CudaDevice& device = dynamic_cast<CudaDevice&>(*rank.device);
            cudaGraph_t recorded = nullptr;
            check_cuda(cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeThreadLocal), "begin");
            rank.communicator.all_gather(device, from.data(), to.data(), 4);
            check_cuda(cudaStreamEndCapture(device.stream(), &recorded), "end");
            check_cuda(cudaGraphInstantiate(&graph, recorded, 0), "instantiate");
            cudaGraphDestroy(recorded);
          }
          ~Recording() { cudaGraphExecDestroy(graph); }
          Recording(const Recording&) = delete;
          Recording& operator=(const Recording&) = delete;
          Buffer from, to;
          cudaGraphExec_t graph = nullptr;
        };
        const Recording recording(own);
        own.communicator.barrier(*own.device);
        if (own.communicator.rank() == 0) {
          fake_cuda::set({.devices = 2, .ill_rank = 0, .aborts_spread = true});
        }
        for (;;) own.communicator.barrier(*own.device);
      },
      milliseconds(20000), [] {}, 2);
  for (const std::string& outcome : outcomes) CHECK_THAT(outcome, Contains("remote process exited"));
  CHECK(calls_of("ncclCommAbort") == 2);
  CHECK(fake_cuda::complaint().empty());
}

TEST_CASE("news of another rank's end ends every wait for NCCL", "[nccl]") {
  const Gpu gpu({.devices = kDevices});
  fake_cuda::fail(0);
  std::atomic<bool> dead = false;
  const auto news = [&] {
    if (dead) throw PeerFailed("rank 7 has died");
  };
  SECTION("in a barrier") {
    std::string later;
    const auto outcomes = run_nccl(
        1,
        [&](const Connection& own) {
          own.communicator.barrier(*own.device);
          dead = true;
          try {
            own.communicator.check();
          } catch (const PeerFailed& error) {
            later = error.what();
          }
          own.communicator.barrier(*own.device);
        },
        milliseconds(20000), news);
    CHECK(later == "rank 7 has died");
    CHECK(outcomes[0] == "peer: rank 7 has died");
  }
  SECTION("at the start") {
    dead = true;
    CHECK(run_nccl(
              1, [](const Connection&) {}, milliseconds(20000), news)[0] == "peer: rank 7 has died");
  }
  CHECK((calls_of("ncclCommAbort") == 1 && calls_of("ncclCommDestroy") == 0));
}

TEST_CASE("a rank that waits in the driver behind a dead rank's collective ends", "[nccl]") {
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 5)), .devices = kDevices});
  const bool frees = GENERATE(false, true);
  fake_cuda::fail(0);
  std::atomic<bool> queued = false, dead = false, ended = false, hung = false;
  const auto outcomes = run_nccl(
      2,
      [&](const Connection& own) {
        own.communicator.barrier(*own.device);
        if (own.communicator.rank() == 1) {  // calls nothing any more, unless rank 0 would wait for ever
          while (!queued) std::this_thread::sleep_for(milliseconds(1));
          dead = true;
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (!ended && !hung) {
            std::this_thread::sleep_for(milliseconds(1));
            hung = std::chrono::steady_clock::now() > deadline;
          }
          throw std::runtime_error("killed");
        }
        const Buffer from(own.device, 4), to(own.device, 8);
        own.communicator.all_gather(*own.device, from.data(), to.data(), 4);
        queued = true;
        const float number = 1;
        if (frees) {
          own.device->free(own.device->allocate(4), 4);
        } else {
          own.device->copy_in(from.data(), &number, 4);
        }
        ended = true;
        own.communicator.abort("too late to be the reason");
        float got[2] = {};
        copy_out(own.communicator, *own.device, std::as_writable_bytes(std::span(got)), to.data());
      },
      milliseconds(20000), [] {}, kDevices,
      [&](int rank) { return rank == 0 && dead ? std::optional<std::string>("rank 1 has died") : std::nullopt; });
  CHECK_FALSE(hung);
  CHECK(outcomes == std::vector<std::string>{"peer: rank 1 has died", "killed"});
  CHECK((calls_of("ncclCommAbort") == 2 && calls_of("ncclCommDestroy") == 0));
}

TEST_CASE("NCCL that does not start says what to do", "[nccl]") {
  const Gpu gpu({.devices = kDevices});
  fake_cuda::fail(0);
  const auto nothing = [](const Connection&) {};
  SECTION("ranks share a GPU") {
    for (const std::string& outcome : run_nccl(
             2, nothing, milliseconds(20000), [] {}, 1)) {
      CHECK_THAT(outcome, Contains("user: rank ") && Contains("of 2 shares cuda:0") && Contains("workers_per_rank"));
    }
    CHECK(calls_of("ncclCommAbort") == 2);
  }
  SECTION("another error") {
    fake_cuda::set({.devices = kDevices, .ill_rank = 0});
    CHECK_THAT(run_nccl(1, nothing)[0],
               Contains("rank 0 of 1 on cuda:0: NCCL cannot connect the ranks: remote process"));
    CHECK(calls_of("ncclCommAbort") == 1);
  }
  SECTION("ranks that never come") {
    CHECK_THAT(run_nccl(1, nothing, milliseconds(0))[0], Contains("after 0 s they are not all there"));
    CHECK(calls_of("ncclCommAbort") == 1);
  }
  SECTION("no GPU") {
    CHECK_THROWS_WITH(make_nccl_communicator(Launch{}, make_cpu_device(), {}),
                      Contains("rank 0 of 1 computes on cpu, but NCCL connects GPUs only: choose another device, or "
                               "set exchange.communicator to \"auto\""));
    Launch by_mpirun;
    by_mpirun.size = 2;
    by_mpirun.mpi = true;
    CHECK_THROWS_WITH(require_nccl(by_mpirun, *make_cpu_device()),
                      Contains("or set exchange.communicator to \"auto\" or \"mpi\""));
  }
  SECTION("a rank that is not there") {
    Launch launch;
    launch.rank = 1;
    launch.size = 2;
    launch.meeting.host = "127.0.0.1";
    launch.meeting.port = free_port();
    NcclOptions options;
    options.meeting.timeout = milliseconds(100);
    CHECK_THROWS_WITH(make_nccl_communicator(launch, std::make_shared<CudaDevice>(1), options),
                      Contains("rank 1 of 2 did not find rank 0"));
  }
  CHECK(calls_of("ncclCommDestroy") == 0);
}

// The host runs ahead of the GPU until a batch has to wait for memory that the GPU still reads, which it does behind an
// exchange that is never done.
TEST_CASE("a rank that waits in the driver behind a collective ends when NCCL finds an error by itself", "[nccl]") {
  const Gpu gpu({.devices = kDevices});
  fake_cuda::fail(0);
  std::atomic<bool> queued = false, ended = false;
  const auto outcomes = run_nccl(2, [&](const Connection& own) {
    own.communicator.barrier(*own.device);
    if (own.communicator.rank() == 1) {  // nothing of it arrives any more
      while (!queued) std::this_thread::sleep_for(milliseconds(1));
      fake_cuda::set({.devices = kDevices, .ill_rank = 0});
      while (!ended) std::this_thread::sleep_for(milliseconds(1));
      throw std::runtime_error("the test is over");
    }
    const std::shared_ptr<void> leaves(nullptr, [&](void*) { ended = true; });
    const Buffer from(own.device, 4), to(own.device, 8);
    const auto upload = own.device->make_upload(4);
    const float number = 1;
    own.communicator.all_gather(*own.device, from.data(), to.data(), 4);
    queued = true;
    for (int step = 0; step < 16; ++step) {
      upload->stage(&number, 4);
      upload->arrive();
      upload->release();
    }
    own.communicator.check();
  });
  CHECK_THAT(outcomes[0], Contains("rank 0: all_gather failed: "));
}

TEST_CASE("NCCL registers no buffers of recordings, unless the environment says so", "[nccl]") {
  const Gpu gpu({.devices = kDevices});
  const char* const kVariable = "NCCL_GRAPH_REGISTER";
  const auto connected = [] {
    CHECK(run_nccl(1, [](const Connection&) {})[0].empty());
    return fake_cuda::graph_register();
  };
  unsetenv(kVariable);
  CHECK(connected() == "0");
  setenv(kVariable, "1", 1);
  CHECK(connected() == "1");
  unsetenv(kVariable);
}

TEST_CASE("NCCL tells its version", "[nccl]") { CHECK_THAT(nccl_description(), Catch::StartsWith("NCCL 2.")); }
