#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/ptx/interpreter/program.h"

// A kernel that is ready to run: every instruction knows the function that executes it and where its operands lie.
namespace dgc::ptx {

struct Warp;
struct Instruction;

inline constexpr unsigned kWarpSize = 32;
using Lanes = uint32_t;  // one bit for each lane of a warp
using Slot = uint32_t;   // where the 32 lanes of a register lie, in bytes from the start of a warp's registers
inline constexpr Slot kNoSlot = ~Slot{0};

// Does the instruction for some lanes of a warp, which are at least one.
using Execute = void (*)(Warp&, const Instruction&, Lanes);

// What happens beside or instead of Execute.
enum class Flow : uint8_t { next, branch, exit, trap, barrier, lanes_together };

enum class Rounding : uint8_t { nearest, zero, down, up };

// Of loads, stores and atomics: which others they are ordered with.
struct Order {
  bool strong = false;  // volatile, relaxed and stronger: not a data race with another strong one
  bool acquire = false, release = false;
};

struct Instruction {
  Execute execute = nullptr;
  Flow flow = Flow::next;
  bool guarded = false, guard_negated = false;
  bool aligned = false;  // of a barrier: all lanes of a warp must come together. Of a branch: none may go elsewhere
  Slot guard = kNoSlot;
  uint32_t target = 0;  // of a branch
  Slot to = kNoSlot, to_predicate = kNoSlot;
  std::array<Slot, 4> from{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  Slot members = kNoSlot;  // of lanes_together: the mask of the lanes that are waited for

  Rounding rounding = Rounding::nearest;
  bool flush = false, saturate = false, negate = false;

  Space space = Space::generic;
  Order order;
  Slot base = kNoSlot;  // of an address
  bool wide_base = true;
  uint64_t offset = 0;
  uint8_t count = 1;  // of the elements of a vector
  std::array<Slot, 4> elements{kNoSlot, kNoSlot, kNoSlot, kNoSlot};

  unsigned line = 0;
  std::string_view text;
};

struct Kernel {
  Program program;
  std::vector<Instruction> code;
  uint32_t register_bytes = 0;                         // of a warp
  std::vector<std::pair<Slot, uint64_t>> constants32;  // what the slots of literals hold
  std::vector<std::pair<Slot, uint64_t>> constants64;
};

// Throws PtxError, which names the line, where an instruction is not known.
Kernel make_kernel(Program program);

}  // namespace dgc::ptx
