#pragma once

#include "dist/communicator.h"

namespace dgc {

// Groups of consecutive ranks, as if each were one rank: all of a group's ranks make the same calls with the same data.
class BetweenGroups final : public Communicator {
 public:
  // `all` must outlive it.
  BetweenGroups(Communicator& all, int ranks_per_group);

  std::string name() const override { return all_.name(); }
  int rank() const override { return all_.rank() / ranks_per_group_; }
  int size() const override { return all_.size() / ranks_per_group_; }
  bool between_processes() const override { return all_.between_processes(); }
  bool recordable() const override { return all_.recordable(); }

  // A group's ranks bring a part of its data each, so that between groups everything travels once. Where the data
  // cannot be divided evenly every rank brings all of it to those of its number in the other groups.
  void all_gather(Device&, const void* mine, void* all, size_t bytes) override;
  void gather_shards(Device&, std::span<const float* const> local_workers, float* mine, size_t n) override;
  void barrier(Device& device) override { all_.barrier(device); }
  std::unique_ptr<Communicator> split(const Ranks& groups) override { return same_place_->split(groups); }
  void check() override { all_.check(); }
  void abort(const std::string& reason) noexcept override { all_.abort(reason); }

 private:
  Communicator& all_;
  int ranks_per_group_, place_;               // of this rank in its group
  std::unique_ptr<Communicator> same_place_;  // one rank of each group
};

}  // namespace dgc
