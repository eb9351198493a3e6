#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dist/communicator.h"
#include "kernels/backend.h"

namespace dgc {

// What the host learns of a finished step.
struct StepResult {
  uint64_t step = 0;
  double grad_norm = 0;  // square root of the mean over all workers of |g_i|^2, before clipping
  LossStats loss{};      // summed over all workers' batches
  bool skipped = false;  // some worker's gradient was not finite: nothing has changed, on any rank
  bool stop = false;     // some rank was asked to stop
};

// The numbers of one step, on the device: what the step starts from, what the workers tell each other, and what follows
// from that. The host only queues work. It gets the result from take(), up to kQueued steps later, so that it need not
// wait for the device.
class StepRecord {
 public:
  static constexpr size_t kQueued = 2;

  // The backend and the communicator must outlive the record.
  StepRecord(Backend&, Communicator&, int local_workers);

  void begin(const StepInput&);
  // control() and local() return device memory.
  StepControl* control() const { return static_cast<StepControl*>(memory_.data()); }
  WorkerShare* local(int worker) const { return static_cast<WorkerShare*>(local_.data()) + worker; }

  // Writes the squared norms of the local workers' gradients, of n elements each, into the workers' shares. If there
  // are fewer gradients than workers, each gradient counts for the same number of consecutive workers.
  void measure(std::span<float* const> gradients, int64_t n);
  // Collective. Brings the shares of all workers to every rank, before the step changes anything for good, and decides
  // whether all workers skip the step.
  void judge();
  // The same with the shares of those workers that are there, in worker order, which the caller has brought from
  // read_local() of each rank. Waits for the device to copy them to it, and queues the rest.
  void judge(std::span<const WorkerShare> present);
  std::vector<WorkerShare> read_local() const;  // waits for the device

  // Queues the report of this step. At most kQueued reports wait to be taken.
  void finish();
  // Returns the result of the oldest finished step, and waits for that step. Throws UserError when a worker's message
  // comes from another program or config, PeerFailed when it is damaged or when another rank has failed.
  StepResult take();

  // What a checkpoint keeps: the loss scale and how long it has held.
  StepControl read_control() const;
  void restore_control(const StepControl&);

  int workers() const { return static_cast<int>(all_count_); }  // N, over all ranks
  int local_workers() const { return static_cast<int>(local_count_); }

 private:
  WorkerShare* all() const { return reinterpret_cast<WorkerShare*>(control() + 1); }

  Backend& backend_;
  Communicator& communicator_;
  size_t local_count_, all_count_;
  Buffer memory_;  // the control, then all workers' shares: reported in one piece
  Buffer local_;   // this rank's shares
  std::vector<std::unique_ptr<Download>> reports_;
  size_t next_ = 0, queued_ = 0;
};

}  // namespace dgc
