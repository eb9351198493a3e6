#include "tests/fuzz/support/fake_socket.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <mutex>

namespace dgc {
namespace {

std::mutex mutex;
std::deque<Socket> waiting;

Socket next_stranger() {
  const std::lock_guard lock(mutex);
  if (waiting.empty()) return {};
  Socket socket = std::move(waiting.front());
  waiting.pop_front();
  return socket;
}

// An eventfd that is always readable: poll() says that someone waits.
Socket listener() { return Socket(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)); }

}  // namespace

int milliseconds_until(Deadline) { return 0; }  // all that will ever come is there

std::vector<Socket> listen_at(std::span<const std::string>, int& port, std::string&) {
  if (port == 0) port = 1;
  std::vector<Socket> listeners;
  listeners.push_back(listener());
  return listeners;
}

Socket accept_from(const Socket&, std::string& peer) {
  peer = "192.0.2.1";
  return next_stranger();
}

std::vector<std::string> look_up(const MeetingPoint&, const Wait&, Trouble&) { return {"192.0.2.1"}; }

Socket connect_to(std::span<const std::string>, int, const Wait&, Trouble& trouble) {
  Socket socket = next_stranger();
  if (!socket) trouble = {"nobody is there"};
  return socket;
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, const Wait&) {
  return send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

bool receive_all(const Socket& socket, std::span<std::byte> bytes, const Wait&) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

namespace fuzz {

Stranger put_stranger(const Pieces& pieces) {
  std::array<int, 2> ends{};
  require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  Socket theirs(ends[0]), ours(ends[1]);
  for (const std::string& piece : pieces) {
    require(send(ends[0], piece.data(), piece.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(piece.size()));
  }
  require(shutdown(ends[0], SHUT_WR) == 0);
  const std::lock_guard lock(mutex);
  waiting.push_back(std::move(ours));
  return Stranger(std::move(theirs));
}

void send_home() {
  const std::lock_guard lock(mutex);
  waiting.clear();
}

namespace {

std::string read_all(const Socket& end, int flags) {
  std::string all;
  std::array<char, 8192> part{};
  while (true) {
    const ssize_t got = recv(end.get(), part.data(), part.size(), flags);
    // Said once, and before what was sent, where the other side has left something unread.
    if (got < 0 && (errno == ECONNRESET || errno == EINTR)) continue;
    if (got <= 0) return all;
    all.append(part.data(), static_cast<size_t>(got));
  }
}

}  // namespace

std::string Stranger::heard() const { return read_all(end_, MSG_DONTWAIT); }
std::string Stranger::heard_to_end() const { return read_all(end_, 0); }

std::string hear(Pieces& pieces, size_t bytes) {
  std::string all;
  while (all.size() < bytes && !pieces.empty()) {
    const std::string piece = pieces.front();
    if (piece.empty()) break;
    pieces.erase(pieces.begin());
    all += piece.substr(0, bytes - all.size());
  }
  return all;
}

Pieces cut(const std::string& said, Input& input) {
  constexpr size_t kMostPieces = 4;
  Pieces pieces;
  size_t at = 0;
  for (size_t n = input.take<uint8_t>() % kMostPieces; n > 0 && at < said.size(); --n) {
    pieces.push_back(said.substr(at, 1 + input.take<uint16_t>() % 600));
    at += pieces.back().size();
  }
  if (at < said.size()) pieces.push_back(said.substr(at));
  return pieces;
}

}  // namespace fuzz
}  // namespace dgc
