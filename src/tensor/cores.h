#pragma once

namespace dgc {

// Returns how many cores the machine has, or fewer where a control group limits this process and those beside it in a
// container to less processor time. At least 1.
int machine_cores();

// Returns how many of machine_cores() this process may use, as it may be bound to some cores (taskset, mpirun
// --bind-to, srun). At least 1.
int usable_cores();

}  // namespace dgc
