#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dist/launch.h"

namespace dgc {

using Deadline = std::chrono::steady_clock::time_point;

// For messages.
inline double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

int milliseconds_until(Deadline);  // for poll(): never negative, rounded up

// A deadline, and a function that is called several times a second until then. An exception of the function ends the
// wait.
struct Wait {
  Wait(
      Deadline until, std::function<void()> while_waiting = [] {})  // NOLINT: mostly there is only a deadline
      : deadline(until), look(std::move(while_waiting)) {}
  Deadline deadline;
  std::function<void()> look;
};

// Why there is no connection.
struct Trouble {
  std::string text;
  bool of_place = false;  // the name is unknown or the system refuses the address: waiting for others does not help
};

// Owns a socket. All of them are non-blocking.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Listens on all addresses of this machine, or on the loopback ones alone when `at` names those. It does not look up a
// host name, which often resolves to another address on its own machine than elsewhere. Throws UserError.
std::vector<Socket> listen_at(const MeetingPoint& at);

// Listens on all addresses of this machine, at a free port, which it returns in `port`. Throws UserError.
Socket listen_at_free_port(int& port);

// Accepts a waiting connection. The socket is empty when none waits after all.
Socket accept_from(const Socket& listener);

// Whether the host's name has an address here; `trouble` says why not.
bool is_known(const MeetingPoint&, const Wait&, Trouble&);

// Tries all of the host's addresses. The socket is empty when none answers, and `trouble` says why.
Socket connect_to(const MeetingPoint&, const Wait&, Trouble&);

// Both return whether all bytes went or came before the deadline.
bool send_all(const Socket&, std::span<const std::byte>, const Wait&);
bool receive_all(const Socket&, std::span<std::byte>, const Wait&);

}  // namespace dgc
