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

// The numbers of one step, on the device: what it starts from, what the workers tell each other, what is decided from
// it. The host only queues; what came out it learns from take(), up to kQueued steps later, so that it need not wait.
class StepRecord {
 public:
  static constexpr size_t kQueued = 2;

  // All must outlive it.
  StepRecord(Backend&, Communicator&, int local_workers);

  void begin(const StepInput&);
  StepControl* control() const { return static_cast<StepControl*>(memory_.data()); }  // device memory, as are the next
  WorkerShare* local(int worker) const { return static_cast<WorkerShare*>(local_.data()) + worker; }

  // Adds the squares of the local workers' gradients, of n elements each, to their shares. Where there are fewer
  // gradients than workers, as many consecutive workers share each.
  void measure(std::span<float* const> gradients, int64_t n);
  // Collective. Exchanges the shares of all workers, known to every rank before anything is touched for good, and
  // decides whether all skip this step together.
  void judge();

  // Queues the report of this step. At most kQueued reports wait to be taken.
  void finish();
  // Of the oldest finished step; waits for it. Throws UserError when a worker's message could not be used, PeerFailed
  // when another rank has failed.
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
