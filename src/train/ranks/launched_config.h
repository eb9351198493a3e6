#pragma once

#include "config/options.h"
#include "dist/launch/launch.h"

namespace dgc {

// Whether MPI has started the processes and is in this build.
bool has_mpi(const Launch&);

// The launch of this process. Where MPI connects the ranks, it lacks the place where they would meet and their secret.
Launch this_launch(const Environment& = process_environment);

// The config of a run that was started as `launch` says: with several processes, each process is a rank. The result
// depends on nothing that may differ between the processes. Throws UserError where config, launcher and this build do
// not fit together.
Config with_launch(Config, const Launch&);

}  // namespace dgc
