#pragma once

#include <optional>

#include "dist/launch/launch.h"

namespace dgc {

// What Open MPI's mpirun says about this process; nothing where mpirun has not started it. Throws UserError.
std::optional<Launch> open_mpi_launch(const Environment&);

// Whether MPI counts the ranks as `launch` does. It does so for ranks of mpirun and of an srun that speaks PMIx, but
// not for ranks of a torchrun that mpirun has started on every machine.
bool mpi_knows_ranks(const Environment&, const Launch&);

}  // namespace dgc
