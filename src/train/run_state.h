#pragma once

#include <cstdint>

#include "json/lines.h"
#include "optim/lr_schedule.h"
#include "run/checkpoint.h"
#include "train/best_evaluation.h"
#include "train/divergence.h"

namespace dgc {

// Where a run stands, but for its tensors: the numbers that a checkpoint keeps in its manifest, by the keys that
// docs/checkpoint_format.md explains. A new one is a field here and a line in run_state.cpp.
struct RunState {
  int64_t step = 0;              // finished steps
  int64_t position = 0;          // Rank::position()
  bool flushed = false;          // what the optimizer held back has been sent, so training cannot go on
  bool owes_evaluation = false;  // the evaluation at this step has failed, and is made when the run goes on
  Skipped skipped;
  PlateauState plateau;
  BestEvaluation best;
  int64_t best_kept = 0;  // the step of the best evaluation that is in a checkpoint

  // What a rank works out when it saves. Between saves these are as in the checkpoint that the run was resumed from.
  int64_t workers = 0;
  int64_t threads = -1;  // Backend::threads(); -1 in checkpoints of earlier versions
  int64_t steps_per_epoch = 0;
  int64_t unexchanged = 0;  // steps behind the last exchange
  float loss_scale = 1;
  int64_t good_steps = 0;     // at this loss scale
  bool skipped_last = false;  // the newest step
  bool sound = true;          // Rank::sound()
  double wall_seconds = 0;    // of all attempts
};

// Of the best evaluation only where the run looks for it.
Row to_values(const RunState&, bool seeks_best);

// Checksums show what a disk has damaged, not what somebody has written: every number is checked before arithmetic uses
// it. What the manifest lacks is as in a run that begins, with `first_loss_scale`. Throws UserError that names
// checkpoint and key.
RunState read_run_state(const Checkpoint&, float first_loss_scale);

// Throws UserError unless a number of the checkpoint's manifest is one of least ... most.
struct Bounds {
  int64_t least = 0;
  int64_t most = int64_t{1} << 48;  // sums of a few such numbers do not overflow
};
void require_within(const Checkpoint&, const char* key, int64_t value, Bounds);

}  // namespace dgc
