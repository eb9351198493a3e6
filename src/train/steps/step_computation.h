#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "config/options.h"
#include "train/steps/rank_memory.h"

namespace dgc {

// What steps are computed with. All of it must outlive the StepComputation.
struct StepContext {
  const Config& config;
  Backend& backend;
  Communicator& communicator;
  RankMemory& memory;
  const Network& network;
};

// Who took part in an exchange.
struct Attendance {
  int64_t worker_steps = 0;   // whose losses are in its report: steps of all workers, added up
  bool everyone = false;      // all ranks have waited for each other
  std::vector<int> absent{};  // ranks whose messages did not come in time; they are in a later exchange
};

// The step that is to be queued.
struct NextStep {
  StepInput input;         // with the learning rate that the schedule has for the step
  double sparsity = 0;     // of an exchange at its end
  bool must_share = true;  // whether an exchange has to end it, because the epoch ends with it, or the run
  bool everyone = true;    // whether all ranks have to take part in an exchange at its end, however late some are
};

// What a rank's backend computes in a step, from batches that have arrived to new weights: for each of the rank's
// workers forward, loss and backward, then the decision whether all workers skip the step, the exchange and the
// optimizer's step. Its implementations say whether every step ends with an exchange.
class StepComputation {
 public:
  explicit StepComputation(const StepContext&);
  virtual ~StepComputation() = default;

  // Losses in the sum over a worker's batch.
  int64_t terms() const { return terms_; }
  // Queues a step. Returns the number of steps since the last exchange if an exchange ends this one, whose report
  // (RankMemory::record) is queued then, and else 0. A backend may have recordings of what this call queues.
  virtual int64_t queue(const NextStep&) = 0;
  // Whether this rank has come too late for the last exchange. The next call of queue() then takes no step of its own,
  // looks at nothing in NextStep, and returns the number of steps that the other ranks made up to their next exchange,
  // or 0 where what this rank has moved by is exchanged before that.
  virtual bool behind() const { return false; }
  // Who took part in the last exchange, for which queue() has returned `steps`.
  virtual Attendance attendance(int64_t steps) const {
    return {.worker_steps = steps * context_.memory.record.workers(), .everyone = true};
  }
  // Steps behind the last exchange.
  virtual int64_t unexchanged() const { return 0; }
  // The learning rate at which an exchange changes the weights, where the schedule says `scheduled`.
  virtual double exchange_rate(double scheduled) const { return scheduled; }

  // state() names the tensors of each local worker that a checkpoint keeps besides all others; right behind an exchange
  // there are fewer. resume() is told how many steps behind an exchange the checkpoint was made, and is called before
  // state().
  virtual std::vector<NamedState> state() const { return {}; }
  virtual void resume(int64_t /*unexchanged*/) {}

 protected:
  // What the forward and the backward passes of a worker use besides the worker's own memory.
  struct Pass {
    const Arena& weights;
    const StepControl* control = nullptr;
    LossStats* loss = nullptr;  // device memory; overwritten
    // Gradients of trained parameters from first_param on are complete. Empty: nobody looks before the pass has ended.
    std::function<void(int first_param)> ready = {};
  };

  int local_workers() const { return static_cast<int>(context_.memory.workers.size()); }
  RankMemory::Worker& worker(int local) const { return context_.memory.workers[static_cast<size_t>(local)]; }

  // The next pass of a worker begins with the statistics and the state that are kept.
  void begin_with_kept(int local);
  // Writes all workers' gradients and losses, and moves their next statistics and next states on. Where the memory has
  // several places, workers compute at the same time, and so `ready` of several workers may be called at the same time.
  // recorded: each worker's passes may be replayed from a recording of their own. The caller then records nothing of
  // what this call queues, and `ready` queues nothing.
  enum class Passes { recorded, as_they_are };
  void run_workers(Passes, const std::function<Pass(int local)>& pass_of);
  // Judges the gradients, exchanges them and changes the shared weights. If the step is not skipped, every worker keeps
  // its next statistics and its next states.
  void exchange(std::span<float* const> gradients);
  // If the step is not skipped, every worker keeps its next statistics and its next states.
  void keep_results();
  // What a recording holds: the first number of its key.
  enum Recorded : uint64_t { kStep, kOwnSteps, kPasses, kExchange };
  // Whether the passes of all workers are the same work in every step. Otherwise they depend on how long the executors
  // of the micro-batches are, and workers meet in too many combinations of lengths for recordings of whole steps.
  bool passes_are_alike() const;
  void add_lengths(int local, RecordKey& key) const;  // those lengths, of one worker
  // Whether exchanges may be recorded. All ranks have to record or replay an exchange in the same step (NCCL's guide,
  // "Using NCCL with CUDA Graphs"). Passes that differ allocate memory at other times on each rank, and after that a
  // rank records anew. An evaluation is no such case: each rank tells whether it has allocated memory meanwhile, and if
  // one has, all ranks record anew.
  bool exchanges_are_recordable() const;
  // Calls `body`, which has an exchange in it, or replays a recording of it where exchanges may be recorded. A step
  // that is observed is not recorded.
  void queue_exchange(const RecordKey&, const std::function<void()>& body);
  // Likewise, for a body without collectives: it is called as it is where this rank has no memory for a recording.
  void queue_alone(const RecordKey&, const std::function<void()>& body);

  const StepContext context_;

 private:
  bool is_observed() const { return context_.backend.observer != nullptr; }  // lanes' backends never are
  void run_worker(RankMemory::Place&, int local, const Pass&);
  void run_micro_batch(RankMemory::Place&, int local, int64_t part, const Pass&);
  int trained_before(int param) const;  // the number of the first trained parameter from this one on, for the optimizer
  void keep_unless_skipped(const Arena& next, const Arena& arena);

  int64_t terms_;
};

std::unique_ptr<StepComputation> make_step_computation(const StepContext&);

}  // namespace dgc
