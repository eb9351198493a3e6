#include "dist/transfers.h"

#include <algorithm>

namespace dgc {

std::vector<Transfer> all_gather_transfers(const Ranks& ranks, const void* mine, void* all, size_t bytes) {
  std::vector<Transfer> transfers;
  for (int i = 0; i < ranks.size; ++i) {
    std::byte* const part = static_cast<std::byte*>(all) + static_cast<size_t>(i) * bytes;
    transfers.push_back({.peer = ranks.at(i), .from = mine, .to = part, .out = bytes, .in = bytes});
  }
  return transfers;
}

std::vector<Transfer> shard_transfers(int place, const Ranks& ranks, std::span<const float* const> local_workers,
                                      float* mine, size_t n) {
  const size_t row = shard_size(n, ranks.size);
  const auto first = [&](int i) { return std::min(n, static_cast<size_t>(i) * row); };
  const auto bytes = [&](int i) { return (first(i + 1) - first(i)) * sizeof(float); };
  std::vector<Transfer> transfers;
  for (int i = 0; i < ranks.size; ++i) {
    for (const float* worker : local_workers) {
      transfers.push_back(
          {.peer = ranks.at(i), .from = worker + first(i), .to = mine, .out = bytes(i), .in = bytes(place)});
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
