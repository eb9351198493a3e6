#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dist/launch.h"

namespace dgc {

struct RendezvousOptions {
  uint64_t config = 0;  // hash of the resolved config: ranks with another one are refused
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

// The ranks meet, once, before they can talk: what rank 0 has in `blob` is in everyone's on return. Every rank passes
// as many bytes. Strangers at the meeting point, ranks of another run, of another size or with another config are
// turned away, and told why. Throws UserError that names the rank, the place and what to do, at the latest after the
// timeout.
void share_from_rank0(const Launch&, const RendezvousOptions&, std::span<std::byte> blob);

}  // namespace dgc
