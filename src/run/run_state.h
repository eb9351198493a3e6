#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "config/options.h"
#include "json/lines.h"
#include "run/checkpoint.h"
#include "run/manifest.h"

namespace dgc {

// Steps that were left out, as gradients were not finite.
struct Skipped {
  int64_t step = 0;       // the last skipped step
  int64_t in_row = 0;     // consecutive skipped steps up to `step`
  int64_t exchanges = 0;  // consecutive skipped exchanges; as many as in_row unless exchange.every_steps is above 1
};

// The evaluation of a run with the lowest validation loss so far.
struct BestEvaluation {
  double loss = std::numeric_limits<double>::infinity();
  int64_t step = 0;   // 0: there is none yet
  int64_t since = 0;  // evaluations after it

  // Counts an evaluation. A loss that is NaN is no improvement.
  void add(int64_t at_step, double new_loss) {
    if (new_loss < loss) {
      *this = {new_loss, at_step, 0};
    } else {
      ++since;
    }
  }
};

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
  int64_t best_kept = 0;  // the step of the best evaluation of which there is a checkpoint, as not every save succeeds

  // What a rank works out when it saves. Between saves these are as in the checkpoint that the run was resumed from.
  int64_t workers = 0;
  int64_t threads = -1;  // Backend::threads(); -1 in checkpoints of earlier versions
  int64_t steps_per_epoch = 0;
  int64_t unexchanged = 0;  // steps behind the last exchange
  float loss_scale = 1;
  int64_t good_steps = 0;     // at this loss scale
  bool skipped_last = false;  // the newest step
  bool sound = true;          // Rank::sound(); false: the run was diverging
  double wall_seconds = 0;    // of all attempts
};

// The values for a manifest. Those of the best evaluation are among them only with seeks_best.
Row to_values(const RunState&, bool seeks_best);

// Checksums show what a disk has damaged, not what somebody has written: every number is checked before arithmetic uses
// it. What the manifest lacks is as in a run that begins, with `first_loss_scale`. Throws UserError that names
// checkpoint and key. where: the checkpoint's path.
RunState read_run_state(const Manifest&, const std::string& where, float first_loss_scale = 1);
RunState read_run_state(const Checkpoint&, float first_loss_scale = 1);

// Throws UserError unless a number of a checkpoint's manifest is one of least ... most.
struct Bounds {
  int64_t least = 0;
  int64_t most = int64_t{1} << 48;  // sums of a few such numbers do not overflow
};
void require_within(const std::string& where, const char* key, int64_t value, Bounds);

}  // namespace dgc
