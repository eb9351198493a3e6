#pragma once

#include "config/options.h"
#include "run/checkpoint.h"
#include "run/run_state.h"

// Ends a run whose numbers are no longer finite. Only the user can mend such a run: exit code 2.
namespace dgc {

// Throws UserError once so many exchanges as optimizer.max_skipped_steps says are skipped in a row, because diverged
// weights or broken data do not recover.
void require_progress(const Config&, const CheckpointStore&, const Skipped&);

// Throws UserError that says since which step numbers are not finite, and which checkpoint is the last good one.
[[noreturn]] void throw_diverged(const CheckpointStore&, const Skipped&);

}  // namespace dgc
