#pragma once

#include <string>

#include "run/checkpoint.h"
#include "tensor/params.h"

namespace dgc {

struct ShareArgs {
  std::string state;  // "u", "v"
  int64_t from = 1;   // workers of the checkpoint
  int64_t to = 1;     // workers that share the state now
  int64_t group = 1;  // workers per group; the file of its first worker has its state
};

// Every element of the arena becomes the sum over the checkpoint's workers, in their order and in double precision,
// divided by `to` / `group` and rounded once: the sum over the new workers equals the old sum up to a relative 2^-24.
// One worker's file at a time is in memory. Throws UserError naming file and tensor.
void load_share(const Checkpoint&, const ShareArgs&, const Arena&);

}  // namespace dgc
