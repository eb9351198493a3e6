#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dist/meeting/handshake.h"

namespace dgc {

inline constexpr size_t kMostStrangers = 64;  // at once, besides the ranks that are expected

// Rank 0's front door: it accepts whoever connects, and lets in who proves that he knows the secret
// (dist/meeting/handshake.h). A stranger has `patience` in all, however many bytes he says, and there are `most`
// strangers at once: one more, and of the address with the most of them the oldest must go. So silent ones neither use
// up the process's descriptors nor keep a rank out, which proves itself within one round trip, and who comes from one
// address again and again drives out none of another. Nothing here waits, but for 20 ms where the process has no
// descriptor left.
class Reception {
 public:
  struct Rules {
    Purpose purpose;
    size_t first_bytes;  // of the frame with which a caller begins
    size_t most;
    std::chrono::milliseconds patience = std::chrono::seconds(5);
  };
  Reception(std::vector<Socket> listeners, const Secret&, const Rules&);

  // Adds what poll() has to watch.
  void add_to(std::vector<pollfd>&) const;

  // A caller that has proven himself, and his first frame.
  struct Caller {
    Socket socket;
    SealedSession session;
    std::vector<std::byte> first;
  };
  // Hears who is there, and accepts who waits. Returns the callers that have proven themselves just now.
  std::vector<Caller> receive();

  // "; 7 strangers were turned away, the last one, from 10.0.0.9, because ..."; empty: none. Safe to print.
  const std::string& strangers() const { return strangers_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A connection, and what has come over it so far.
  struct Stranger {
    Socket socket;
    std::string peer;  // his address
    Greeting host;
    Clock::time_point since;
    std::vector<std::byte> said;
    size_t bytes = 0;
  };

  std::string listen_to(Stranger&, std::vector<Caller>& callers);
  void accept_all(Clock::time_point now);
  std::vector<Stranger>::iterator one_too_many();
  void turn_away(const Stranger&, const std::string& why);

  std::vector<Socket> listeners_;
  Secret secret_;
  Rules rules_;
  std::vector<Stranger> at_the_door_;  // the oldest first
  uint64_t turned_away_ = 0;
  std::string strangers_;
};

}  // namespace dgc
