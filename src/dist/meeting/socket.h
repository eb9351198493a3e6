#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dist/launch/launch.h"
#include "tensor/file_descriptor.h"

namespace dgc {

using Deadline = std::chrono::steady_clock::time_point;

// The time as messages tell it.
inline double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

int milliseconds_until(Deadline);  // for poll(): at least 0 and at most 60,000, rounded up

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
  // Waiting does not help: the name is unknown, the system refuses the address, or what answers is of another version
  // or has another secret.
  bool of_place = false;
};

// All sockets are non-blocking.
using Socket = FileDescriptor;

// Listens at numeric addresses, at one port, or with port 0 at one that is free at all of them, which it returns in
// `port`. An address of a kind that this machine does not have is left out. The result is empty, and `problem` says
// why, where nothing is left or another program holds the port.
std::vector<Socket> listen_at(std::span<const std::string> addresses, int& port, std::string& problem);

// Accepts a waiting connection, and returns the other side's numeric address in `peer`. The socket is empty when none
// waits after all.
Socket accept_from(const Socket& listener, std::string& peer);

// The numeric addresses of the host; empty, and `trouble` says why, when its name is unknown here, or a name server
// fails or does not answer before the deadline.
std::vector<std::string> look_up(const MeetingPoint&, const Wait&, Trouble&);

// Tries all of the numeric addresses. The socket is empty when none answers, and `trouble` says why.
Socket connect_to(std::span<const std::string> addresses, int port, const Wait&, Trouble&);

// Both return whether all bytes went or came before the deadline.
bool send_all(const Socket&, std::span<const std::byte>, const Wait&);
bool receive_all(const Socket&, std::span<std::byte>, const Wait&);

}  // namespace dgc
