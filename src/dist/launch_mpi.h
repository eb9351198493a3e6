#pragma once

#include <optional>

#include "dist/launch.h"

namespace dgc {

// Nothing unless Open MPI's mpirun has started this process.
std::optional<Launch> open_mpi_launch(const Environment&);

// Whether MPI will find the very ranks that `launch` says: mpirun's own, or those of an srun that speaks PMIx. Not
// those of a torchrun that mpirun has started on every machine.
bool mpi_knows_ranks(const Environment&, const Launch&);

}  // namespace dgc
