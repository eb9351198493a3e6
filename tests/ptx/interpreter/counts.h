#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dgc::ptx {

// What a launch has executed, between two of its barriers for the whole grid or in all where it has none. Instructions
// are those of PTX: ptxas makes about as many of the machine's. An instruction or access of a warp counts once, however
// many of its lanes take part.
struct Counts {
  uint64_t instructions = 0;                        // of warps
  uint64_t spinning = 0;                            // of warps, beside these: while a block waits for other blocks
  uint64_t loads = 0, stores = 0;                   // accesses of warps to global memory, but for atomics
  uint64_t loads_128 = 0, stores_128 = 0;           // those in which each lane moves 128 bits
  uint64_t loaded_bytes = 0, stored_bytes = 0;      // by all lanes in such accesses
  uint64_t loaded_sectors = 0, stored_sectors = 0;  // sectors of 32 bytes that each of these accesses touches
  uint64_t local = 0;                               // accesses of warps to local memory
  uint64_t global_atomics = 0, shared_atomics = 0;  // of lanes
  uint64_t barriers = 0;                            // of blocks
};

// A launch and its phases: phase n of a block ends at its n-th barrier for the whole grid.
struct CountedLaunch {
  std::string kernel;
  unsigned grid = 0, block = 0;
  std::vector<Counts> phases;
};

// As one line of JSON.
std::string to_json(const CountedLaunch& launch);

}  // namespace dgc::ptx
