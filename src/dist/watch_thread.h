#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "dist/watch.h"
#include "dist/watch_link.h"

namespace dgc {

// The thread of a watch. Rank 0's has a link to every other rank, each of those one to rank 0.
//
// What the calling thread and this one share is in the last part of the members and guarded by mutex_; the rest belongs
// to the thread once it has started.
class Watch::Thread {
 public:
  explicit Thread(const WatchOptions&);
  ~Thread();  // says goodbye, if it was started

  // Before start(): rank 0 listens, or another rank joins it.
  WatchPlace listen();
  void join(const WatchPlace&, const WhileMeeting&);
  void start();
  void wait_for_all(const WhileMeeting&);  // or for the first failure; throws UserError

  std::string cause_of(const std::string& symptom) const;

  std::optional<std::string> failure() const;
  bool told() const;  // whether the failure is one that another rank says itself
  void fail(const std::string& reason) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  // Another rank.
  struct Peer {
    int rank = 0;
    std::string who;
    WatchLink link;  // closed once it has left, in whatever way
    Clock::time_point heard;
  };
  // Whoever has connected to rank 0. A rank is one only when it answers the welcome: it may have given up before.
  struct Guest {
    WatchLink link;
    std::optional<WatchFrame> hello;
  };

  void run();
  void wait_until(Clock::time_point) const;
  void forgive(Clock::duration stopped);
  void receive_guests(Clock::time_point now);
  bool hear_out(Guest&, Clock::time_point now);
  void note_complete();
  void note_goodbye(const Peer&);
  void receive_from_peers(Clock::time_point now);
  void judge(Clock::time_point now);
  void adopt(WatchWord, const std::string& sentence, int about, const Peer* source);
  void tell_all(const WatchFrame&, const Peer* but = nullptr);
  void part();
  WatchFrame failure_frame(WatchWord, const std::string& sentence, int about) const;
  void wake() const;

  WatchOptions options_;
  WatchFrame own_;  // hello
  std::chrono::milliseconds interval_, silence_;
  Socket wake_;
  Socket listener_;  // until all have come
  std::vector<Guest> guests_;
  std::vector<Peer> peers_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::set<int> absent_;  // on rank 0
  bool all_here_ = false;
  bool stop_ = false;
  std::string own_reason_;  // not yet told
  std::string failure_;
  bool told_ = false;
  std::atomic<bool> failed_ = false;  // failure_ is there: asked in tight loops

  std::jthread thread_;
};

}  // namespace dgc
