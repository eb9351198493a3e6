#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dist/communicator.h"

namespace dgc {

// Collectives as transfers between ranks, for communicators that carry bytes and nothing else.

// Sends `out` bytes to a peer and receives `in` bytes from it. A transfer with the rank itself as the peer is a copy.
struct Transfer {
  int peer = 0;
  const void* from = nullptr;
  void* to = nullptr;
  size_t out = 0, in = 0;
};

// The transfers of Communicator::all_gather and gather_shards among some ranks, of which this one is number `place`:
// those with the first rank, then as many with each of the next. Two ranks list the transfers between them in the same
// order.
std::vector<Transfer> all_gather_transfers(const Ranks& ranks, const void* mine, void* all, size_t bytes);
std::vector<Transfer> shard_transfers(int place, const Ranks& ranks, std::span<const float* const> local_workers,
                                      float* mine, size_t n);

// Host memory through which data of a device pass. It is kept from one call to the next.
class HostStage {
 public:
  std::byte* take(Device&, size_t bytes);  // valid until the next call

 private:
  std::unique_ptr<HostMemory> memory_;
  size_t bytes_ = 0;
};

}  // namespace dgc
