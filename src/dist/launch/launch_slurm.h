#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dist/launch/launch.h"

namespace dgc {

// What srun says about this process; nothing where this process is no task of a SLURM step. A shell or batch script of
// an allocation is no task, although it sees SLURM_NTASKS and even SLURM_PROCID. Throws UserError.
std::optional<Launch> slurm_launch(const Environment&);

// Rank 0's machine, and a port that srun reserved or that follows from the job's number. Throws UserError.
MeetingPoint slurm_meeting_point(const Environment&);

// The number that a list such as "4(x2),3" gives for node 0, 1, ... Throws UserError when the list has too few.
int tasks_on_node(const std::string& list, int64_t node);

// The first machine of a list such as "gpu[03-05,07],login", and whether it is the only one.
struct FirstHost {
  std::string name;
  bool only = false;
};
FirstHost first_host(const std::string& nodelist);

}  // namespace dgc
