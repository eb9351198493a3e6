#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dist/rendezvous.h"

namespace dgc {

struct WatchOptions {
  int rank = 0, size = 1;
  // Within this long of a rank's death or silence all others know. A rank is given up when it has been silent for 8/10
  // of it; the rest is for the ranks to end in. At least 100 ms, or 0: nobody is watched.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // for all ranks to join
  WhileMeeting while_waiting = [](const std::string&) {};             // for others, until all have met
};

// Notices that another process of the run has died, hangs or is stopped, whatever the communicator does meanwhile: each
// process has a thread that exchanges heartbeats with rank 0's over TCP, and rank 0 tells all what became of whom. The
// first failure is the one that everybody learns.
class Watch {
 public:
  // What rank 0 has in the bytes is in everyone's on return. Every rank passes as many, and calls the other while it
  // waits.
  using ShareFromRank0 = std::function<void(std::span<std::byte>, const WhileMeeting&)>;

  // Collective: returns when all have come. Throws UserError when the ranks cannot reach rank 0's machine over TCP, or
  // do not come; PeerFailed when one fails meanwhile; what while_waiting throws. The others learn of either.
  Watch(const WatchOptions&, const ShareFromRank0&);
  ~Watch();  // says goodbye: a rank that leaves in this way is no failure
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // These may be called from any thread.

  // "rank 2 (node7, pid 77) has died", "... has not answered for 8 s", or "...: " and what it said itself. A rank that
  // was stopped so long that the others have given it up learns this when it goes on.
  std::optional<std::string> failure() const;
  // For whoever waits for other ranks, in the loop in which it waits. Throws PeerFailed with the above,
  // ToldByPeer where it is what that rank said itself.
  void check() const;
  // The same while the ranks still meet: also calls WatchOptions::while_waiting, and tells the others what that throws.
  void look_around(const std::string& waiting);
  // For whoever finds an error that may come of another rank's end: the failure, once it is known, within a second;
  // else the symptom.
  std::string cause_of(const std::string& symptom) const;
  // This rank cannot go on; tells the others why, and returns when they have been told, after a second at most.
  void fail(const std::string& reason) noexcept;

 private:
  class Thread;
  void meet(const ShareFromRank0&);

  WatchOptions options_;
  std::unique_ptr<Thread> thread_;  // none where nobody is watched
};

}  // namespace dgc
