#pragma once

#include "config/options.h"
#include "train/rank_memory.h"

namespace dgc {

// What a rank's backend computes in a step, from batches that have arrived to new weights: for each of the rank's
// workers forward, loss and backward, then the decision whether all workers skip the step, the exchange and the
// optimizer's step. The arguments of the constructor must outlive it.
class StepComputation {
 public:
  // first_worker: the number, over all ranks, of the rank's first worker. workers: of all ranks.
  StepComputation(const Config&, Backend&, RankMemory&, const Network&, int first_worker, int workers);

  // Losses in the sum over a worker's batch.
  int64_t terms() const { return terms_; }
  // Queues the step, between RankMemory::record's begin() and finish(). A backend may record what this call queues.
  void queue();

 private:
  void run_worker(int local);           // writes the worker's gradient, and its loss to its WorkerShare
  int trained_before(int param) const;  // the number of the first trained parameter from this one on, for the optimizer
  void keep_unless_skipped(const Arena& next, const Arena& arena);

  const Config& config_;
  Backend& backend_;
  RankMemory& memory_;
  const Network& network_;
  int first_worker_, workers_;
  int64_t terms_;
};

}  // namespace dgc
