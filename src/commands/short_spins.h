#pragma once

namespace dgc {

// GNU's OpenMP lets a thread that waits spin for long. On cores that other processes use too, long spins slow a
// training down, and on cores of its own short ones are as fast (docs/results.md). OpenMP reads the setting before
// main() and before any constructor of this program, so a command that computes starts the program once more in its
// place, as the same process with the same arguments. Where the environment has OMP_WAIT_POLICY or GOMP_SPINCOUNT, the
// user has decided, and nothing is restarted. To be called before this process has threads.
void restart_with_short_spins();

}  // namespace dgc
