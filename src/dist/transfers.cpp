#include "dist/transfers.h"

#include <algorithm>

#include "dist/communicator.h"

namespace dgc {

std::vector<Transfer> all_gather_transfers(int ranks, const void* mine, void* all, size_t bytes) {
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < ranks; ++peer) {
    std::byte* const part = static_cast<std::byte*>(all) + static_cast<size_t>(peer) * bytes;
    transfers.push_back({.peer = peer, .from = mine, .to = part, .out = bytes, .in = bytes});
  }
  return transfers;
}

std::vector<Transfer> shard_transfers(int rank, int ranks, std::span<const float* const> local_workers, float* mine,
                                      size_t n) {
  const size_t row = shard_size(n, ranks);
  const auto first = [&](int peer) { return std::min(n, static_cast<size_t>(peer) * row); };
  const auto bytes = [&](int peer) { return (first(peer + 1) - first(peer)) * sizeof(float); };
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < ranks; ++peer) {
    for (const float* worker : local_workers) {
      transfers.push_back(
          {.peer = peer, .from = worker + first(peer), .to = mine, .out = bytes(peer), .in = bytes(rank)});
      mine += row;
    }
  }
  return transfers;
}

std::byte* HostStage::take(Device& device, size_t bytes) {
  if (memory_ == nullptr || bytes > bytes_) {
    memory_ = device.make_host_memory(bytes);
    bytes_ = bytes;
  }
  return memory_->data();
}

}  // namespace dgc
