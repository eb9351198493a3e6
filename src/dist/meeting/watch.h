#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/meeting/interfaces.h"
#include "dist/meeting/rendezvous.h"

namespace dgc {

struct WatchOptions {
  int rank = 0, size = 1;
  // All ranks learn of a rank's death or silence within this time. A rank is given up when it has been silent for 8/10
  // of the time; the rest is for the ranks to end in. At least 100 ms, or 0: nobody is watched. Where it is not 0, rank
  // 0's is that of all ranks.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  WhileMeeting while_waiting = [](const std::string&) {};  // called until all ranks have met
  std::vector<std::string> listen_at = kLoopback;          // rank 0: this machine's numeric addresses
  std::string met_at = {};  // another rank: the host at which it has met rank 0 over TCP; empty: they met otherwise
};

// Notices that another process of the run has died, hangs or is stopped, whatever the communicator does meanwhile: each
// process has a thread that exchanges heartbeats with rank 0's over TCP, and rank 0 tells all ranks which one failed,
// and how. Only the first failure is told. Rank 0's place comes with a secret, so whoever shares it shares that too.
class Watch {
 public:
  // Copies rank 0's bytes to all ranks, which pass equally many, and to nobody else: a secret is among them. A rank
  // calls the WhileMeeting while it waits.
  using ShareFromRank0 = std::function<void(std::span<std::byte>, const WhileMeeting&)>;

  // Collective: returns when all ranks have come. Throws UserError when a rank cannot reach rank 0's machine over TCP
  // or does not come, PeerFailed when another rank fails meanwhile, and what while_waiting throws. The other ranks
  // learn of each of these errors.
  Watch(const WatchOptions&, const ShareFromRank0&);
  ~Watch();  // says goodbye: a rank that leaves in this way is no failure
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The functions below may be called from any thread.

  // The first failure, if there is one: "rank 2 (node7, pid 77) has died", "... has not answered for 8 s", or "...: "
  // and that rank's own words. A rank that was stopped so long that the others have given it up learns this when it
  // goes on.
  std::optional<std::string> failure() const;
  // To be called in a loop that waits for other ranks. Throws PeerFailed with failure(), or ToldByPeer where the failed
  // rank reports it itself.
  void check() const;
  // Replaces check() while the ranks still meet: it also calls WatchOptions::while_waiting, and tells the others what
  // that throws.
  void look_around(const std::string& waiting);
  // The cause of an error that another rank's end may explain: the failure if one is known within a tenth of the
  // timeout, a second at most, else the symptom.
  std::string cause_of(const std::string& symptom) const;
  // Declares that this rank cannot go on. Tells the others why, and returns when they have been told, after a second at
  // most.
  void fail(const std::string& reason) noexcept;

 private:
  class Thread;
  void meet(const ShareFromRank0&);

  WatchOptions options_;
  std::unique_ptr<Thread> thread_;  // null where nobody is watched
};

}  // namespace dgc
