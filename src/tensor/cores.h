#pragma once

namespace dgc {

// Cores of the machine, or fewer where a control group limits this process and those beside it in a container to less
// processor time. At least 1.
int machine_cores();

// Of these, what this process may use: it may be bound to some of them (taskset, mpirun --bind-to, srun). At least 1.
int usable_cores();

}  // namespace dgc
