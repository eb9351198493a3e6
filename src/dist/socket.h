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

int milliseconds_until(Deadline);  // for poll(): never negative, rounded up

// How long something may take, and what is looked at several times a second meanwhile; what that throws ends the wait.
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

// On all addresses of this machine, or on the loopback ones alone when `at` names those: a host name often resolves to
// something else on its own machine. Throws UserError.
std::vector<Socket> listen_at(const MeetingPoint& at);

// On all addresses of this machine, at a port that is free, which it returns. Throws UserError.
Socket listen_at_free_port(int& port);

// A waiting connection; none when there is none after all.
Socket accept_from(const Socket& listener);

// Whether the host's name has an address here; `trouble` says why not.
bool is_known(const MeetingPoint&, const Wait&, Trouble&);

// Tries all of the host's addresses. Without one the socket is empty, and `trouble` says why.
Socket connect_to(const MeetingPoint&, const Wait&, Trouble&);

// Whether all bytes went or came before the deadline.
bool send_all(const Socket&, std::span<const std::byte>, const Wait&);
bool receive_all(const Socket&, std::span<std::byte>, const Wait&);

}  // namespace dgc
