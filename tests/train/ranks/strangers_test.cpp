// A training whose ranks meet over TCP and have heartbeats, as under torchrun, while strangers knock at every door that
// they open: it ends in the same bits. The ranks are threads, and gradients travel between threads.
#include <array>
#include <atomic>
#include <catch.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include "dist/meeting/handshake.h"
#include "dist/meeting/interfaces.h"
#include "dist/meeting/rendezvous.h"
#include "dist/meeting/roster.h"
#include "dist/meeting/watch.h"
#include "dist/meeting/watch_link.h"
#include "tasks/task.h"
#include "tensor/errors.h"
#include "tests/dist/meeting/free_port.h"
#include "tests/support/tiny.h"
#include "train/rank.h"
#include "train/ranks/rank_backend.h"

namespace dgc {
namespace {

using namespace test;

constexpr int kKnockedRanks = 3, kKnockedSteps = 6;

std::vector<std::byte> bytes_in(const auto& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

// Comes to a port again and again, says what does not belong there, and mostly stays.
class Strangers {
 public:
  explicit Strangers(const Secret& wrong) : wrong_(wrong) {}

  void come_to(int port) {
    const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    Trouble trouble;
    Socket socket = connect_to(kLoopback, port, soon, trouble);
    if (!socket) return;
    const Purpose purpose = ++visits_ % 2 == 0 ? Purpose::rendezvous : Purpose::heartbeat;
    const auto say = [&](std::span<const std::byte> words) { send_all(socket, words, soon); };
    switch (visits_ % 5) {
      case 0:
        say(std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n", 18)));
        break;
      case 1:  // slowly
        say(bytes_in(kHandshakeMagic));
        break;
      case 2: {  // a rank with another secret
        Hello hello;
        hello.rank = 1;
        hello.size = kKnockedRanks;
        introduce(socket, wrong_, Purpose::rendezvous, bytes_in(hello), soon, trouble);
        break;
      }
      case 3:
        say(recorded_);
        break;
      default: {
        say(bytes_in(make_greeting(purpose)));
        say(std::vector<std::byte>(600, std::byte{1}));
      }
    }
    there_.push_back(std::move(socket));
    constexpr size_t kMost = 150;
    if (there_.size() > kMost) there_.pop_front();
  }
  int visits() const { return visits_; }

  // What a rank of an earlier run said to its rank 0.
  void record(const Secret& secret) {
    const Greeting host = make_greeting(Purpose::rendezvous), own = make_greeting(Purpose::rendezvous);
    const SealedSession session(secret, SealedSession::Side::caller, host, own);
    Hello hello;
    hello.rank = 1;
    hello.size = kKnockedRanks;
    recorded_ = bytes_in(own);
    const auto sealed = session.seal(bytes_in(hello));
    recorded_.insert(recorded_.end(), sealed.begin(), sealed.end());
  }

 private:
  Secret wrong_;
  std::vector<std::byte> recorded_;
  std::deque<Socket> there_;
  int visits_ = 0;
};

// Three ranks at this place, with this secret. The last one starts once `before_last` has returned, which is given the
// port of the heartbeats.
std::vector<std::vector<float>> trained_behind_doors(const Launch& place,
                                                     const std::function<void(int port)>& before_last) {
  const Config written = tiny_config({"ranks=3", "workers_per_rank=1"});
  const Datasets sets = open_sets(written);
  const Config config = task_of(written).completed(written, sets);
  const auto communicators = make_thread_communicators(kKnockedRanks);
  std::vector<std::vector<float>> weights(kKnockedRanks);
  std::vector<std::string> failures(kKnockedRanks);
  std::atomic<int> heartbeat_port = 0;
  constexpr std::chrono::minutes kEnough(2);

  const auto live = [&](int rank) {
    Launch launch = place;
    launch.rank = launch.local_rank = rank;
    RendezvousOptions meeting;
    meeting.timeout = kEnough;
    const auto share = [&](std::span<std::byte> bytes, const WhileMeeting&) {
      share_from_rank0(launch, meeting, bytes);
      WatchPlace shared;
      std::memcpy(static_cast<void*>(&shared), bytes.data(), sizeof(shared));
      if (rank == 1) heartbeat_port = static_cast<int>(shared.port);
    };
    const Watch watch({.rank = rank, .size = kKnockedRanks, .timeout = kEnough}, share);
    std::array<std::byte, 128> id{};  // as NCCL's
    if (rank == 0) id.fill(std::byte{9});
    share_from_rank0(launch, meeting, id);
    DGC_CHECK(id[127] == std::byte{9}, "rank 0's bytes");
    const auto backend = make_backend(config, {});
    Communicator& communicator = *communicators[static_cast<size_t>(rank)];
    Rank worker(config, sets.view(), *backend, communicator);
    for (int step = 0; step < kKnockedSteps; ++step) {
      worker.train_step();
      while (worker.next_metrics()) {
      }
      watch.check();
    }
    worker.finish_steps();
    while (worker.next_metrics()) {
    }
    const Arena& own = worker.weights();
    auto& mine = weights[static_cast<size_t>(rank)];
    mine.resize(static_cast<size_t>(own.extent()));
    own.device().copy_out(mine.data(), own.data(), own.bytes());
  };
  const auto guarded = [&](int rank) {
    try {
      live(rank);
    } catch (const std::exception& error) {
      failures[static_cast<size_t>(rank)] = error.what();
      communicators[static_cast<size_t>(rank)]->abort(error.what());
      if (rank == 1 && heartbeat_port == 0) heartbeat_port = 1;  // nobody waits for it any more
    }
  };
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank + 1 < kKnockedRanks; ++rank) ranks.emplace_back(guarded, rank);
  while (heartbeat_port == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  before_last(heartbeat_port);
  ranks.emplace_back(guarded, kKnockedRanks - 1);
  ranks.clear();
  CHECK(failures == std::vector<std::string>(kKnockedRanks));
  return weights;
}

}  // namespace

TEST_CASE("ranks train to the same bits while a thousand strangers knock at their doors") {
  Launch place;
  place.launcher = "torchrun";
  place.size = kKnockedRanks;
  place.run = "a run";
  place.meeting.host = "127.0.0.1";
  place.meeting.port = free_port();
  place.secret = make_secret();
  const auto truth = trained_behind_doors(place, [](int) {});
  CHECK_FALSE(truth[0].empty());

  place.meeting.port = free_port();
  Strangers strangers(make_secret());
  strangers.record(place.secret);
  std::atomic<bool> over = false;
  std::jthread later;
  const auto weights = trained_behind_doors(place, [&](int heartbeat_port) {
    for (int attempts = 0; strangers.visits() < 1000 && attempts < 10000; ++attempts) {
      strangers.come_to(place.meeting.port);
      strangers.come_to(heartbeat_port);
    }
    later = std::jthread([&, heartbeat_port] {
      while (!over) {
        strangers.come_to(place.meeting.port);
        strangers.come_to(heartbeat_port);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  });
  over = true;
  later.join();
  CHECK(strangers.visits() >= 1000);
  for (const auto& own : weights) CHECK(own == truth[0]);
}

}  // namespace dgc
