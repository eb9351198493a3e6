#pragma once

#include "dist/communicator.h"

namespace dgc {

// A communicator that can hold its collectives among some of its ranks. Its own collectives are among all ranks; a part
// made by split() passes its calls on to the whole, with the part's ranks.
class WholeCommunicator : public Communicator {
 public:
  void all_gather(Device& device, const void* mine, void* all, size_t bytes) final {
    all_gather_among(everyone(), device, mine, all, bytes);
  }
  void gather_shards(Device& device, std::span<const float* const> local_workers, float* mine, size_t n) final {
    gather_shards_among(everyone(), device, local_workers, mine, n);
  }
  void barrier(Device& device) final { barrier_among(everyone(), device); }
  std::unique_ptr<Communicator> split(const Ranks&) final;

  // The collectives of Communicator among the given ranks, of which this rank must be one.
  virtual void all_gather_among(const Ranks&, Device&, const void* mine, void* all, size_t bytes) = 0;
  virtual void gather_shards_among(const Ranks&, Device&, std::span<const float* const> local_workers, float* mine,
                                   size_t n) = 0;
  virtual void barrier_among(const Ranks&, Device&) = 0;

 protected:
  Ranks everyone() const { return {.first = 0, .size = size()}; }
};

// The place of `rank` among the ranks, from 0. Throws InternalError when it is not one of them.
int place_among(const Ranks&, int rank);

}  // namespace dgc
