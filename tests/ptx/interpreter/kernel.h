#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/ptx/interpreter/program.h"

// A kernel that is ready to run: every instruction knows the function that executes it and where its operands lie.
namespace dgc::ptx {

namespace sass {
struct Operands;
}

struct Warp;
struct Instruction;

inline constexpr unsigned kWarpSize = 32;
using Lanes = uint32_t;  // one bit for each lane of a warp
using Slot = uint32_t;   // where the 32 lanes of a register lie, in bytes from the start of a warp's registers
inline constexpr Slot kNoSlot = ~Slot{0};

// Does the instruction for some lanes of a warp, which are at least one.
using Execute = void (*)(Warp&, const Instruction&, Lanes);

// What happens beside or instead of Execute.
enum class Flow : uint8_t {
  next,
  branch,
  exit,
  trap,
  barrier,
  lanes_together,
  // Of SASS alone:
  uniform,          // executes for the registers of the warp, of which each lane's cell holds the same
  branch_if_apart,  // where not all members are here
  branch_if_all,    // where the guard is true for all that are here
  jump              // to the address that each lane holds in its base
};

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
  Slot members = kNoSlot;      // the mask of the lanes that are waited for
  bool spares_absent = false;  // those of them that have returned are not

  Rounding rounding = Rounding::nearest;
  bool flush = false, saturate = false, negate = false;

  Space space = Space::generic;
  Order order;
  Slot base = kNoSlot;  // of an address
  bool wide_base = true;
  Slot base_high = kNoSlot;  // its upper half, where two registers of 32 bits hold it
  uint64_t offset = 0;
  uint8_t count = 1;           // of the elements of a vector
  bool asks_for_more = false;  // of which ptxas may have added some, to join loads, that the program does not use
  std::array<Slot, 4> elements{kNoSlot, kNoSlot, kNoSlot, kNoSlot};

  const sass::Operands* operands = nullptr;  // of SASS, which has more of them

  unsigned line = 0;
  std::string_view text;
};

// A word that a launch puts into its constant bank: one of the arguments, or what it says of the launch.
struct LaunchWord {
  enum class Kind : uint8_t { argument, threads, blocks, workspace_low, workspace_high };
  Kind kind = Kind::argument;
  uint32_t offset = 0;  // of an argument, in bytes
};

struct Kernel {
  Program program;
  std::vector<Instruction> code;
  uint32_t register_bytes = 0;                         // of a warp
  std::vector<std::pair<Slot, uint64_t>> constants32;  // what the slots of literals hold
  std::vector<std::pair<Slot, uint64_t>> constants64;

  // PTX leaves it to the machine where lanes that have parted meet again; SASS says it. And PTX has no registers of the
  // warp: what one group of lanes has put into such a register, it reads before its next branch or wait, so up to there
  // no other group may go on.
  bool lanes_meet_where_told = false;
  std::vector<std::pair<Slot, LaunchWord>> launch_words;
  std::vector<uint32_t> by_address;   // of a jump's address / 16: the index in code
  std::shared_ptr<const void> owned;  // what instructions point to
};

// Throws PtxError, which names the line, where an instruction is not known.
Kernel make_kernel(Program program);

}  // namespace dgc::ptx
