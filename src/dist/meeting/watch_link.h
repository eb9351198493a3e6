#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dist/meeting/handshake.h"

namespace dgc {

// What the watches of a run (dist/meeting/watch.h) send each other: frames of one size, as they lie in memory, and
// sealed (dist/meeting/handshake.h) with a secret that rank 0 makes for this run alone.

enum class WatchWord : uint32_t {
  hello,      // to rank 0: rank, pid and machine of the sender
  welcome,    // from rank 0: its rank, pid and machine
  beat,       // the sender is alive
  goodbye,    // the sender leaves, which is no failure
  failure,    // `text`: what became of rank `rank`
  complaint,  // a failure in the words of rank `rank`, which reports it itself
  complete    // from rank 0: all ranks have come
};

struct WatchFrame {
  WatchWord word = WatchWord::beat;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t pid = 0;
  char text[496] = {};  // dist/meeting/fixed_text.h; the machine's name in hello and welcome

  std::string who() const;  // "rank 2 (node7, pid 77)", of a hello or welcome
};
static_assert(sizeof(WatchFrame) == 512);

WatchFrame watch_frame_of_this_process(WatchWord, int rank, int size);

// A connection that carries frames. Nothing here waits.
class WatchLink {
 public:
  WatchLink() = default;
  WatchLink(Socket socket, const SealedSession& session) : socket_(std::move(socket)), session_(session) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  const Socket& socket() const { return socket_; }
  void close() { socket_ = Socket(); }

  enum class Heard { nothing, frame, end, forgery };  // forgery: what has come is not the other side's next frame
  Heard receive(WatchFrame&);
  // A frame that the system does not take at once is lost: only a peer that does not read has a full buffer.
  void send(const WatchFrame&);

 private:
  Socket socket_;
  std::optional<SealedSession> session_;  // empty while there is no socket
  std::array<std::byte, sizeof(WatchFrame) + kSealBytes> part_{};
  size_t bytes_ = 0;
  bool torn_ = false;  // half a frame is on its way, so no other can follow
};

// Where rank 0's watch listens. Plain bytes, to be shared with all ranks.
struct WatchPlace {
  Secret::Bytes secret{};
  uint32_t port = 0;
  uint32_t timeout_ms = 0;   // WatchOptions::timeout of rank 0
  char machine[72] = {};     // name of rank 0's machine, of 64 characters at most
  char addresses[912] = {};  // numeric, separated by blanks
};
static_assert(sizeof(WatchPlace) == 1024);

// With a secret of its own. `addresses`: where it listens.
WatchPlace watch_place_of_this_machine(int port, std::span<const std::string> addresses,
                                       std::chrono::milliseconds timeout);

// Connects to rank 0's watch, sends `hello` and receives `welcome`. `met_at` is WatchOptions::met_at. Each host that
// may be rank 0's has its share of the time until the deadline. Throws UserError, which names each host's trouble,
// after the deadline, but not before it has tried all hosts.
WatchLink join_watch(const WatchPlace&, const std::string& met_at, const WatchFrame& hello, const Wait&,
                     WatchFrame& welcome);

}  // namespace dgc
