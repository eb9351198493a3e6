#pragma once

#include "dist/communicator.h"

namespace dgc {

// A communicator that can hold its collectives among some of its ranks: what it is asked as a whole is among all of
// them, and a part of it only passes on what it is asked.
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

  // As Communicator says of all; this rank is one of them.
  virtual void all_gather_among(const Ranks&, Device&, const void* mine, void* all, size_t bytes) = 0;
  virtual void gather_shards_among(const Ranks&, Device&, std::span<const float* const> local_workers, float* mine,
                                   size_t n) = 0;
  virtual void barrier_among(const Ranks&, Device&) = 0;

 protected:
  Ranks everyone() const { return {.first = 0, .size = size()}; }
};

// Which of them `rank` is. Throws InternalError when it is none.
int place_among(const Ranks&, int rank);

}  // namespace dgc
