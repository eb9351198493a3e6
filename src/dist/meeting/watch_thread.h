#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "dist/meeting/reception.h"
#include "dist/meeting/watch.h"
#include "dist/meeting/watch_link.h"

namespace dgc {

// The thread of a watch. Rank 0's thread has a link to every other rank; each other rank's thread has one to rank 0.
//
// The members from mutex_ on are shared with the calling threads and guarded by mutex_. The other members belong to the
// thread once it has started.
class Watch::Thread {
 public:
  explicit Thread(const WatchOptions&);
  ~Thread();  // says goodbye, if it was started

  // To be called before start(): rank 0 listens, another rank joins it.
  WatchPlace listen();
  void join(const WatchPlace&, const WhileMeeting&);
  void start();
  void wait_for_all(const WhileMeeting&);  // returns at the first failure too; throws UserError

  std::string cause_of(const std::string& symptom) const;

  std::optional<std::string> failure() const;
  bool told() const;  // whether the failed rank reports the failure itself
  void fail(const std::string& reason) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  // Another rank.
  struct Peer {
    int rank = 0;
    std::string who;
    WatchLink link;  // closed once the rank has left, in whatever way
    Clock::time_point heard;
    bool has_spoken = false;  // whether wait_until() has found something to receive
  };
  // A rank that rank 0 has welcomed. It becomes a Peer only when it answers the welcome, as it may have given up
  // before.
  struct Guest {
    WatchFrame hello;
    WatchLink link;
  };

  void run();
  void wait_until(Clock::time_point);
  void rest_until(Clock::time_point) const;
  void forgive(Clock::duration stopped);
  void receive_guests(Clock::time_point now);
  void welcome(Reception::Caller);
  bool hear_out(Guest&, Clock::time_point now);
  void note_complete();
  void note_goodbye(const Peer&);
  void receive_from_peers(Clock::time_point now);
  void judge(Clock::time_point now);
  void adopt(WatchWord, const std::string& sentence, int about, const Peer* source);
  void tell_all(const WatchFrame&, const Peer* but = nullptr);
  void part();
  WatchFrame failure_frame(WatchWord, const std::string& sentence, int about) const;
  bool lacks_peers() const;
  std::chrono::milliseconds interval() const {
    return std::min<std::chrono::milliseconds>(options_.timeout / 10, std::chrono::seconds(1));
  }
  // Between two looks at the peers, however many beats arrive: so what rank 0 looks at in a second grows with the
  // number of ranks, and not with its square.
  std::chrono::milliseconds rest() const {
    return std::min<std::chrono::milliseconds>(interval() / 10, std::chrono::milliseconds(20));
  }
  std::chrono::milliseconds silence() const { return options_.timeout / 10 * 8; }
  void wake() const;

  WatchOptions options_;
  WatchFrame own_;  // this rank's hello
  Socket wake_;
  std::optional<Reception> reception_;  // open until all ranks have come
  std::vector<Guest> guests_;
  std::vector<Peer> peers_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::set<int> absent_;   // ranks that rank 0 waits for
  std::string strangers_;  // what became of them, for those that wait
  bool all_here_ = false;
  bool stop_ = false;
  std::string failure_;
  WatchFrame news_;      // the failure, as the others are told of it
  bool untold_ = false;  // whether it is this rank's own, which nobody has been told yet
  bool told_ = false;
  std::atomic<bool> failed_ = false;  // failure_ is set; atomic, as tight loops ask

  std::jthread thread_;
};

}  // namespace dgc
