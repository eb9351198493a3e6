#pragma once

#include <array>
#include <cstdint>
#include <source_location>
#include <stdexcept>

// What a thread of an emulated kernel can ask for. kernels/cuda/model.h next to this file gives it CUDA's names.
namespace dgc::emulation {

struct Index {
  unsigned x = 0;
};

// A mistake that a GPU would answer with a hang or with wrong numbers.
struct EmulationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Place {
  const char* what;  // "__syncthreads"
  std::source_location at;
};

void wait_for_block(const Place& place);
void wait_for_grid(const Place& place);
// Waits for the lanes of the mask; returns what each of them brought.
std::array<uint64_t, 32> wait_for_warp(const Place& place, unsigned mask, uint64_t value);
// Another thread may come first here: called where threads meet without waiting, in atomics.
void let_others_run();

}  // namespace dgc::emulation

// CUDA's names are variables and no macros, because structs of CUDA's headers have members of these names.
inline constinit thread_local dgc::emulation::Index threadIdx, blockIdx, blockDim, gridDim;
