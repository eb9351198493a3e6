#pragma once

#include <cstdint>

#include "config/options.h"
#include "run/checkpoint.h"

// What becomes of a run whose numbers are no longer finite. It is the user's to mend: exit code 2.
namespace dgc {

struct Skipped {
  int64_t step = 0;    // the last one
  int64_t in_row = 0;  // steps up to it that were skipped, one after another
};

// Throws UserError once optimizer.max_skipped_steps are reached: weights that diverged, or data that is broken, do not
// mend.
void require_progress(const Config&, const CheckpointStore&, const Skipped&);

// Throws UserError that says since when, and which checkpoint is the last good one.
[[noreturn]] void throw_diverged(const CheckpointStore&, const Skipped&);

}  // namespace dgc
