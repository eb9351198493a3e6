#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptx/interpreter/counts.h"
#include "tests/ptx/interpreter/kernel.h"

namespace dgc::ptx {

enum class RaceCheck { none, as_on_gpus, by_the_letter };  // races.h says how the two differ

struct Launch {
  unsigned grid = 1, block = 32;
  uint64_t seed = 1;         // draws which lanes, warps and blocks go on, and how far
  bool cooperative = false;  // all blocks are resident at once, and may wait for each other
  RaceCheck races = RaceCheck::none;
  // Becomes what each phase has executed (counts.h); null: nobody counts. Lanes of a warp then go on in the order of
  // the program, so a kernel in which some spin until others of the same warp have done something does not end well.
  std::vector<Counts>* counts = nullptr;
};

// Runs the kernel in the memory of this process. The arguments are as many bytes as its parameters take. Every block
// gets its own shared memory, full of 0xff. Throws PtxError, which names the line and the thread, where the kernel
// makes a mistake, or nobody can go on.
void launch(const Kernel& kernel, const Launch& how, const void* args, size_t args_bytes);

}  // namespace dgc::ptx
