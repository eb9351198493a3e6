#pragma once

#include <cstdint>

#include "config/options.h"
#include "run/checkpoint.h"

// Ends a run whose numbers are no longer finite. Only the user can mend such a run: exit code 2.
namespace dgc {

struct Skipped {
  int64_t step = 0;       // the last skipped step
  int64_t in_row = 0;     // consecutive skipped steps up to `step`
  int64_t exchanges = 0;  // consecutive skipped exchanges; as many as in_row unless exchange.every_steps is above 1
};

// Throws UserError once so many exchanges as optimizer.max_skipped_steps says are skipped in a row, because diverged
// weights or broken data do not recover.
void require_progress(const Config&, const CheckpointStore&, const Skipped&);

// Throws UserError that says since which step numbers are not finite, and which checkpoint is the last good one.
[[noreturn]] void throw_diverged(const CheckpointStore&, const Skipped&);

}  // namespace dgc
