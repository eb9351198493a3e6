#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/ptx/interpreter/machine.h"

// Global memory is the memory of the test's process. The other spaces begin at 0, and have these addresses in the
// generic space, where no pointer of the process points.
namespace dgc::ptx {

inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 60;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 60;

struct Location {
  Space space;
  uint64_t address;  // in its space
  std::byte* memory;
};

// Where a lane's access of so many bytes goes. Throws PtxError where it lies outside of its space or is not aligned.
Location locate(Warp& warp, const Instruction& instruction, unsigned lane, size_t bytes);

}  // namespace dgc::ptx
