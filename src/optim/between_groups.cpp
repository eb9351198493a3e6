#include "optim/between_groups.h"

namespace dgc {

BetweenGroups::BetweenGroups(Communicator& all, int ranks_per_group)
    : all_(all),
      ranks_per_group_(ranks_per_group),
      place_(all.rank() % ranks_per_group),
      same_place_(all.split({place_, all.size() / ranks_per_group, ranks_per_group})) {}

void BetweenGroups::all_gather(Device& device, const void* mine, void* all, size_t bytes) {
  const auto parts = static_cast<size_t>(ranks_per_group_);
  if (bytes % parts != 0) return same_place_->all_gather(device, mine, all, bytes);
  // Ranks are numbered group by group, so their parts in rank order are the groups' data in group order.
  const size_t part = bytes / parts;
  all_.all_gather(device, static_cast<const std::byte*>(mine) + static_cast<size_t>(place_) * part, all, part);
}

void BetweenGroups::gather_shards(Device& device, std::span<const float* const> local_workers, float* mine, size_t n) {
  same_place_->gather_shards(device, local_workers, mine, n);
}

}  // namespace dgc
