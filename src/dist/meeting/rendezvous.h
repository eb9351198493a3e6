#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "dist/launch/launch.h"

namespace dgc {

// Called several times a second by a rank that waits for others, with a clause that says for whom. What it throws ends
// the wait.
using WhileMeeting = std::function<void(const std::string& waiting)>;

struct RendezvousOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  WhileMeeting while_waiting = [](const std::string&) {};
  // The interface or address at which rank 0 listens over TCP. Where it is empty, meeting_addresses() decides
  // (dist/meeting/interfaces.h), or, without a secret, rank 0 listens at the loopback addresses of the meeting point.
  std::string interface = {};
};

// Lets the ranks meet, once, before a communicator connects them, and copies rank 0's `blob` to all ranks. All ranks
// pass equally many bytes. Strangers at the meeting point and ranks of another run or size are turned away, and told
// why. Throws UserError that names the rank, the place and what to do, at the latest after the timeout, and soon where
// the place's name is unknown. Throws ToldByPeer once a rank has declined.
void share_from_rank0(const Launch&, const RendezvousOptions&, std::span<std::byte> blob);

// Called in place of share_from_rank0(), or after that has thrown, by a rank that does not take part. `reason` names
// the rank that failed. Rank 0 tells the reason to all ranks that come; another rank tells it to rank 0. Returns when
// they know it, at the latest after the timeout.
void decline_meeting(const Launch&, const RendezvousOptions&, const std::string& reason);

}  // namespace dgc
