#pragma once

#include <vector>

#include "optim/dgc_bucket.h"
#include "optim/lane.h"

namespace dgc {

// Compresses and exchanges buckets on a thread of its own while gradients are still being computed. Whether the step is
// skipped is not known yet, so what u and v become lies in memory of its own until it is.
class DgcOverlap {
 public:
  struct Held {
    Arena* v = nullptr;
    Arena* u = nullptr;  // null: there is none
  };
  DgcOverlap(const OptimizerContext&, bool with_u);

  Backend& backend() const { return lane_.backend(); }  // for the buckets, which must outlive settle()

  // A step begins: buckets are compressed by these rules, one per local worker, but what they do in place is done
  // apart.
  void begin(std::vector<DgcBucket>& buckets, std::vector<DgcCompressArgs> rules);
  void ready(int local_worker, int first_param);  // as Optimizer's, and so is settle()
  void settle();
  // Then, once it is judged: queued on the context's backend. `held` is what the rule of this worker spoke of; where
  // the step is skipped it keeps what it has. Elements from compressed_extent on are not the buckets'.
  void take_over(int local_worker, const Held& held, const StepControl* control, int64_t compressed_extent);

  // Of all steps that are settled, with what the caller adds that nothing hides.
  ExchangeTime time() const;
  void add_exposed(std::chrono::steady_clock::duration time) { exposed_ += time; }

 private:
  struct Next {
    Arena v;
    std::optional<Arena> u;
  };
  void compress(int local_worker, DgcBucket& bucket) const;

  OptimizerContext context_;
  std::vector<Next> next_;  // per local worker, as are the next two
  std::vector<DgcCompressArgs> rules_;
  std::vector<size_t> handed_;  // buckets, in this step
  std::vector<DgcBucket>* buckets_ = nullptr;
  bool is_settled_ = false;
  int64_t steps_ = 0;
  std::chrono::steady_clock::duration exposed_{};
  Lane lane_;  // last: its tasks end before what they use
};

}  // namespace dgc
