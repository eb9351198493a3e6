// src/dist/nccl.cpp as it is, compiled against a fake NCCL: what it asks of NCCL, in which order, and what it does when
// something fails. Whether NCCL does as the fake does is for a machine with GPUs to say.
#include <catch.hpp>
#include <thread>

#include "dist/communicator.h"
#include "dist/launch.h"
#include "fake.h"
#include "tensor/device_cuda.h"
#include "tensor/errors.h"
#include "tests/dist/collectives.h"
#include "tests/dist/free_port.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;
using std::chrono::milliseconds;

namespace {

struct Rank {
  Communicator& communicator;
  std::shared_ptr<Device> device;
};

// Runs `body` as every rank, in threads. What it threw, by rank; "" for nothing.
template <typename Body>
std::vector<std::string> run_nccl(
    int ranks, const Body& body, milliseconds start_timeout = milliseconds(20000),
    const WhileWaiting& while_waiting = [] {}) {
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
      std::unique_ptr<Communicator> communicator;
      const auto device = std::make_shared<CudaDevice>(rank);
      std::string& outcome = outcomes[static_cast<size_t>(rank)];
      try {
        communicator = make_nccl_communicator(launch, device, options);
        body(Rank{*communicator, device});
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
  reset_fake();
  const int ranks = GENERATE(1, 2, 3, 4);
  const size_t n = GENERATE(size_t{0}, size_t{1}, size_t{16}, size_t{17}, size_t{100});
  CAPTURE(ranks, n);
  constexpr size_t kWorkers = 12;
  std::atomic<int> wrong = 0;
  const auto outcomes = run_nccl(ranks, [&](const Rank& own) {
    Communicator& c = own.communicator;
    const auto rank = static_cast<size_t>(c.rank()), size = static_cast<size_t>(c.size());
    const size_t local = kWorkers / size, row = shard_size(n, c.size());
    std::vector<std::vector<float>> values(local, std::vector<float>(n));
    std::vector<const float*> workers;
    for (size_t w = 0; w < local; ++w) {
      for (size_t i = 0; i < n; ++i) values[w][i] = element(rank * local + w, i);
      workers.push_back(values[w].data());
    }
    std::vector<float> shards(kWorkers * row + 1, -1), all(n * size + 1, -1);
    for (int round = 0; round < 2; ++round) {
      c.gather_shards(*own.device, workers, shards.data(), n);
      c.all_gather(*own.device, workers[0], all.data(), n * sizeof(float));
      c.barrier(*own.device);
      c.check();
    }
    for (size_t w = 0; w < kWorkers; ++w) {
      for (size_t i = 0; i < row && rank * row + i < n; ++i) wrong += shards[w * row + i] != element(w, rank * row + i);
    }
    for (size_t i = 0; i < n * size; ++i) wrong += all[i] != element(i / n * local, i % n);
    wrong += shards.back() != -1 || all.back() != -1;
    std::vector<int> small(size);
    all_gather_host(c, *own.device, std::as_bytes(std::span(&ranks, 1)), std::as_writable_bytes(std::span(small)));
    for (const int x : small) wrong += x != ranks;
    wrong += c.name() != "nccl" || !c.recordable() || c.size() != ranks;
  });
  CHECK(outcomes == std::vector<std::string>(static_cast<size_t>(ranks)));
  CHECK(wrong == 0);
  CHECK((fake().finalized == ranks && fake().destroyed == ranks && fake().aborted == 0));
}

TEST_CASE("ranks of NCCL talk among themselves, over the one communicator", "[nccl]") {
  reset_fake();
  const int ranks = GENERATE(1, 4, 6);
  std::atomic<int> wrong = 0;
  const auto outcomes =
      run_nccl(ranks, [&](const Rank& own) { wrong += wrong_in_parts(own.communicator, own.device); });
  CHECK(outcomes == std::vector<std::string>(static_cast<size_t>(ranks)));
  CHECK(wrong == 0);
  CHECK((fake().destroyed == ranks && fake().aborted == 0));
}

TEST_CASE("collectives of NCCL fork from the device's stream and join it", "[nccl]") {
  reset_fake();
  std::vector<std::string> gather, shards;
  const auto outcomes = run_nccl(1, [&](const Rank& own) {
    const std::vector<float> from(16);
    std::vector<float> to(16);
    const float* workers[] = {from.data()};
    calls().clear();
    own.communicator.all_gather(*own.device, from.data(), to.data(), 64);
    gather = std::exchange(calls(), {});
    own.communicator.gather_shards(*own.device, workers, to.data(), 16);
    shards = std::exchange(calls(), {});
  });
  CHECK(outcomes[0].empty());
  CHECK(gather == std::vector<std::string>{"record", "wait", "all_gather", "record", "wait"});
  CHECK(shards == std::vector<std::string>{"record", "wait", "group", "record", "wait"});
}

TEST_CASE("collectives of NCCL come between the work of the stream that asks, beside the others'", "[nccl]") {
  reset_fake();
  const auto outcomes = run_nccl(1, [&](const Rank& own) {
    const std::vector<float> from(16);
    std::vector<float> to(16);
    const auto gpu = std::dynamic_pointer_cast<CudaDevice>(own.device);
    const auto beside = gpu->make_beside();
    for (CudaDevice* device : {gpu.get(), beside.get()}) {
      streams().clear();
      own.communicator.all_gather(*device, from.data(), to.data(), 64);
      DGC_CHECK(streams().size() == 4 && streams()[1] == streams()[2], "NCCL's own stream lies in between");
      DGC_CHECK(streams()[0] == device->stream() && streams()[3] == device->stream(), "the stream that asks");
    }
    DGC_CHECK(gpu->stream() != beside->stream(), "two streams");
    CudaDevice other(7);
    own.communicator.all_gather(other, from.data(), to.data(), 64);
  });
  CHECK_THAT(outcomes[0], Contains("a communicator of NCCL belongs to one GPU"));
}

TEST_CASE("a rank that fails aborts NCCL, and the others say so", "[nccl]") {
  reset_fake();
  const auto outcomes = run_nccl(3, [](const Rank& own) {
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
  CHECK((fake().aborted == 3 && fake().finalized == 0 && fake().destroyed == 0));
}

TEST_CASE("an asynchronous error of NCCL is found by check, and the communicator stays unusable", "[nccl]") {
  reset_fake();
  std::string later;
  const auto outcomes = run_nccl(1, [&](const Rank& own) {
    own.communicator.barrier(*own.device);
    own.communicator.check();
    fake().ill_rank = 0;
    try {
      own.communicator.check();
    } catch (const PeerFailed& error) {
      later = error.what();
    }
    own.communicator.barrier(*own.device);
  });
  CHECK(later == "rank 0: all_gather failed: remote process exited");
  CHECK(outcomes[0] == "peer: " + later);
  CHECK((fake().aborted == 1 && fake().destroyed == 0));
}

TEST_CASE("a failed step ends though recorded graphs still hold the communicator", "[nccl]") {
  reset_fake();
  const auto outcomes = run_nccl(2, [](const Rank& own) {
    struct Graph {  // as in a backend, which goes before the communicator does
      Graph() { ++fake().graphs; }
      ~Graph() { --fake().graphs; }
    } graph;
    own.communicator.barrier(*own.device);
    if (own.communicator.rank() == 0) fake().ill_rank = 0;
    for (;;) own.communicator.barrier(*own.device);
  });
  for (const std::string& outcome : outcomes) CHECK_THAT(outcome, Contains("remote process exited"));
  CHECK((fake().aborted == 2 && fake().graphs == 0));
}

TEST_CASE("news of another rank's end ends every wait for NCCL", "[nccl]") {
  reset_fake();
  std::atomic<bool> dead = false;
  const auto news = [&] {
    if (dead) throw PeerFailed("rank 7 has died");
  };
  SECTION("in a barrier") {
    std::string later;
    const auto outcomes = run_nccl(
        1,
        [&](const Rank& own) {
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
    fake().start = ncclInProgress;
    CHECK(run_nccl(
              1, [](const Rank&) {}, milliseconds(20000), news)[0] == "peer: rank 7 has died");
  }
  CHECK((fake().aborted == 1 && fake().destroyed == 0));
}

TEST_CASE("NCCL that does not start says what to do", "[nccl]") {
  reset_fake();
  const auto nothing = [](const Rank&) {};
  SECTION("ranks share a GPU") {
    fake().start = ncclInvalidUsage;
    for (const std::string& outcome : run_nccl(2, nothing)) {
      CHECK_THAT(outcome, Contains("user: rank ") && Contains("of 2 shares cuda:") && Contains("workers_per_rank"));
    }
    CHECK(fake().aborted == 2);
  }
  SECTION("another error") {
    fake().start = ncclRemoteError;
    CHECK_THAT(run_nccl(1, nothing)[0],
               Contains("rank 0 of 1 on cuda:0: NCCL cannot connect the ranks: remote process"));
    CHECK(fake().aborted == 1);
  }
  SECTION("ranks that never come") {
    fake().start = ncclInProgress;
    CHECK_THAT(run_nccl(1, nothing, milliseconds(100))[0], Contains("after 0.1 s they are not all there"));
    CHECK(fake().aborted == 1);
  }
  SECTION("no GPU") {
    CHECK_THROWS_WITH(make_nccl_communicator(Launch{}, make_cpu_device(), {}),
                      Contains("rank 0 of 1 computes on cpu, but NCCL connects GPUs only"));
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
  CHECK(fake().destroyed == 0);
}

TEST_CASE("NCCL tells its version", "[nccl]") { CHECK(nccl_description() == "NCCL 2.28.9"); }
