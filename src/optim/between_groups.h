#pragma once

#include "dist/communicator.h"

namespace dgc {

// A communicator between groups of consecutive ranks, in which each group counts as one rank. All ranks of a group make
// the same calls with the same data.
class BetweenGroups final : public Communicator {
 public:
  // `all` must outlive this communicator.
  BetweenGroups(Communicator& all, int ranks_per_group);

  std::string name() const override { return all_.name(); }
  int rank() const override { return all_.rank() / ranks_per_group_; }
  int size() const override { return all_.size() / ranks_per_group_; }
  bool between_processes() const override { return all_.between_processes(); }
  bool recordable() const override { return all_.recordable(); }

  // In all_gather() each rank of a group brings an equal part of the group's data, so that all data travel once between
  // groups. In gather_shards(), and where the data cannot be divided evenly, each rank exchanges all data with the
  // ranks that have its place in the other groups.
  void all_gather(Device&, const void* mine, void* all, size_t bytes) override;
  void gather_shards(Device&, std::span<const float* const> local_workers, float* mine, size_t n) override;
  void barrier(Device& device) override { all_.barrier(device); }
  std::unique_ptr<Communicator> split(const Ranks& groups) override { return same_place_->split(groups); }
  void check() override { all_.check(); }
  void abort(const std::string& reason) noexcept override { all_.abort(reason); }

 private:
  Communicator& all_;
  int ranks_per_group_, place_;               // place_: this rank's number within its group
  std::unique_ptr<Communicator> same_place_;  // the ranks that have this place, one of each group
};

}  // namespace dgc
