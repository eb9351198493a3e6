#pragma once

namespace dgc {

// GNU's OpenMP lets a thread that waits spin for long. On cores which others use too that takes a training's time away,
// and on cores of its own a short spin is as fast (docs/results.md). OpenMP reads the setting before main() and before
// any constructor of this program, so a command that computes starts the program once more in its place, as the same
// process with the same arguments. OMP_WAIT_POLICY or GOMP_SPINCOUNT in the environment say that somebody has decided
// otherwise. To be called before this process has threads.
void restart_with_short_spins();

}  // namespace dgc
