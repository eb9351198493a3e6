#pragma once

#include "tests/ptx/interpreter/machine.h"

namespace dgc::ptx {

// Whether some lanes of the warp can go on without another warp.
bool can_run(const Warp& warp);

// Runs at most so many instructions of the warp. Lanes split at branches into groups, of which the launch's seed draws
// the next one, and groups at the same instruction become one again.
void run(Warp& warp, unsigned instructions);

}  // namespace dgc::ptx
