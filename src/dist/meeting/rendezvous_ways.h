#pragma once

#include <cstddef>
#include <span>

#include "dist/meeting/rendezvous.h"
#include "dist/meeting/roster.h"
#include "dist/meeting/socket.h"

namespace dgc {

// The two ways in which share_from_rank0 and decline_meeting carry Hello and Reply. A side that gives up throws
// UserError; a side that learns of another rank's failure throws ToldByPeer.

struct Meeting {
  const MeetingPoint& point;
  const Secret& secret;    // over TCP
  const std::string& run;  // Launch::run
  Hello hello;             // this rank's
  const RendezvousOptions& options;
  Deadline deadline;
};

void host_over_tcp(const Meeting&, std::span<const std::byte> blob);
void join_over_tcp(const Meeting&, std::span<std::byte> blob);
void host_over_files(const Meeting&, std::span<const std::byte> blob);
void join_over_files(const Meeting&, std::span<std::byte> blob);

// Both call RendezvousOptions::while_waiting: rank 0 with the ranks that have not come, another rank with the problem
// that keeps it from rank 0.
void look_around(const Meeting&, const Roster&);
void look_around(const Meeting&, const std::string& problem);

[[noreturn]] void throw_absent(const Meeting&, const Roster&);                // rank 0 has timed out
[[noreturn]] void throw_no_host(const Meeting&, const std::string& problem);  // another rank has timed out
[[noreturn]] void throw_unwelcome(const Meeting&, const Reply&);

}  // namespace dgc
