#pragma once

#include <cstddef>
#include <span>

#include "dist/launch.h"
#include "dist/roster.h"
#include "dist/socket.h"

namespace dgc {

// The two ways in which share_from_rank0 carries Hello and Reply. A side that gives up throws UserError.

struct Meeting {
  const MeetingPoint& point;
  Hello hello;  // this rank's
  std::chrono::milliseconds timeout;
  Deadline deadline;
};

void host_over_tcp(const Meeting&, std::span<const std::byte> blob);
void join_over_tcp(const Meeting&, std::span<std::byte> blob);
void host_over_files(const Meeting&, std::span<const std::byte> blob);
void join_over_files(const Meeting&, std::span<std::byte> blob);

[[noreturn]] void throw_absent(const Meeting&, const Roster&);                // rank 0 has waited long enough
[[noreturn]] void throw_no_host(const Meeting&, const std::string& problem);  // another rank has
[[noreturn]] void throw_refused(const Meeting&, const Reply&);

}  // namespace dgc
