// A training whose ranks meet over TCP and have heartbeats, as under torchrun, while strangers knock at every door that
// they open: it ends in the same bits. The ranks are threads, and gradients travel between threads.
#include <array>
#include <atomic>
#include <catch.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "dist/meeting/handshake.h"
#include "dist/meeting/interfaces.h"
#include "dist/meeting/open_files.h"
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
constexpr int kStaying = 500;  // strangers at each of the two doors

std::vector<std::byte> bytes_in(const auto& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

// Come to one door again and again, say what does not belong there, and mostly stay.
class Strangers {
 public:
  // `hello` is what a rank says first at that door, under `secret`. Nobody says it but as_second_rank(): the others
  // have a recording of how another rank 0 has heard it.
  Strangers(int port, Purpose purpose, const Secret& secret, std::vector<std::byte> hello)
      : port_(port), purpose_(purpose), secret_(secret), hello_(std::move(hello)) {
    const Greeting own = make_greeting(purpose);
    const SealedSession session(secret, SealedSession::Side::caller, make_greeting(purpose), own);
    recorded_ = bytes_in(own);
    const auto sealed = session.seal(hello_);
    recorded_.insert(recorded_.end(), sealed.begin(), sealed.end());
  }

  void knock() {
    Socket socket = connection();
    if (!socket) return;
    const auto say = [&](std::span<const std::byte> words) { send_all(socket, words, soon()); };
    ++visits_;
    drip();
    switch (visits_ % 5) {
      case 0:
        say(std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n", 18)));
        break;
      case 1:  // byte by byte, one at each visit
        slow_.push_back({std::move(socket), 0});
        if (slow_.size() > 8) slow_.pop_front();
        return;
      case 2: {  // a rank with another secret
        Trouble trouble;
        introduce(socket, make_secret(), purpose_, hello_, soon(), trouble);
        break;
      }
      case 3:
        say(recorded_);
        break;
      default: {  // noise where the secret is asked for
        say(bytes_in(make_greeting(purpose_)));
        say(std::vector<std::byte>(hello_.size() + kSealBytes, std::byte{1}));
      }
    }
    stay(std::move(socket));
  }

  // Who knows the secret and has the number of a rank that is there, or on its way, and never answers.
  void knock_as_second_rank() {
    Trouble trouble;
    Socket socket = connection();
    if (socket) introduce(socket, secret_, purpose_, hello_, soon(), trouble);
    stay(std::move(socket));
  }

  int visits() const { return visits_; }

 private:
  struct Slow {
    Socket socket;
    size_t said;
  };

  static Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(2); }
  Socket connection() const {
    Trouble trouble;
    return connect_to(kLoopback, port_, soon(), trouble);
  }
  void stay(Socket socket) {
    there_.push_back(std::move(socket));
    if (std::ssize(there_) > kStaying) there_.pop_front();
  }
  void drip() {
    for (Slow& slow : slow_) {
      if (slow.said < recorded_.size()) send_all(slow.socket, std::span(recorded_).subspan(slow.said++, 1), soon());
    }
  }

  int port_;
  Purpose purpose_;
  Secret secret_;
  std::vector<std::byte> hello_, recorded_;
  std::deque<Socket> there_;
  std::deque<Slow> slow_;
  int visits_ = 0;
};

// Three ranks at this place, with this secret. The last one starts once `before_last` has returned, which is given the
// heartbeats' place. By then rank 0 has met rank 1.
std::vector<std::vector<float>> trained_behind_doors(const Launch& place,
                                                     const std::function<void(const WatchPlace&)>& before_last) {
  const Config written = tiny_config({"ranks=3", "workers_per_rank=1"});
  const Datasets sets = open_sets(written);
  const Config config = task_of(written).completed(written, sets);
  const auto communicators = make_thread_communicators(kKnockedRanks);
  std::vector<std::vector<float>> weights(kKnockedRanks);
  std::vector<std::string> failures(kKnockedRanks);
  std::promise<WatchPlace> heartbeats;
  bool promised = true;  // rank 1's: it has not kept the promise yet
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
      if (rank == 1 && std::exchange(promised, false)) heartbeats.set_value(shared);
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
      if (rank == 1 && promised) heartbeats.set_value({});  // so that nobody waits for it any more
    }
  };
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank + 1 < kKnockedRanks; ++rank) ranks.emplace_back(guarded, rank);
  before_last(heartbeats.get_future().get());
  ranks.emplace_back(guarded, kKnockedRanks - 1);
  ranks.clear();
  CHECK(failures == std::vector<std::string>(kKnockedRanks));
  return weights;
}

}  // namespace

TEST_CASE("ranks train to the same bits while a thousand strangers knock at their doors") {
  raise_open_files();
  Launch place;
  place.launcher = "torchrun";
  place.size = kKnockedRanks;
  place.run = "a run";
  place.meeting.host = "127.0.0.1";
  place.meeting.port = free_port();
  place.secret = make_secret();
  const auto truth = trained_behind_doors(place, [](const WatchPlace&) {});
  CHECK_FALSE(truth[0].empty());

  place.meeting.port = free_port();
  Hello hello;
  hello.rank = 1;
  hello.size = kKnockedRanks;
  Strangers at_rendezvous(place.meeting.port, Purpose::rendezvous, place.secret, bytes_in(hello));
  std::optional<Strangers> at_heartbeat;
  std::atomic<bool> over = false;
  std::jthread later;
  const auto weights = trained_behind_doors(place, [&](const WatchPlace& heartbeats) {
    at_heartbeat.emplace(static_cast<int>(heartbeats.port), Purpose::heartbeat, Secret(heartbeats.secret),
                         bytes_in(watch_frame_of_this_process(WatchWord::hello, 1, kKnockedRanks)));
    for (int attempt = 0; at_heartbeat->visits() < kStaying && attempt < 10 * kStaying; ++attempt) {
      at_rendezvous.knock();
      at_heartbeat->knock();
      if (attempt % 100 == 0) at_heartbeat->knock_as_second_rank();
    }
    Launch second = place;
    second.rank = second.local_rank = 1;
    std::array<std::byte, sizeof(WatchPlace)> told{};
    CHECK_THROWS_WITH(share_from_rank0(second, {}, told), Catch::Contains("another process came with the same rank"));
    later = std::jthread([&] {
      while (!over) {
        at_rendezvous.knock();
        at_heartbeat->knock();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  });
  over = true;
  later.join();
  CHECK(at_rendezvous.visits() >= kStaying);
  CHECK(at_heartbeat->visits() >= kStaying);
  for (const auto& own : weights) CHECK(own == truth[0]);
}

}  // namespace dgc
