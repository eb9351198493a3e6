#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/ptx/interpreter/counts.h"
#include "tests/ptx/interpreter/kernel.h"
#include "tests/ptx/interpreter/random.h"

// The state of a launch: its grid, the blocks that are resident, their warps.
namespace dgc::ptx {

struct Block;
struct Grid;
class Races;

// What a register of type T is stored in.
template <typename T>
using Cell = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Lanes of a warp that are at the same instruction and go on together.
struct Group {
  enum class State : uint8_t { runs, waits_for_lanes, waits_for_block };
  uint32_t at = 0;  // index of the next instruction
  Lanes lanes = 0;
  State state = State::runs;
};

struct Warp {
  Block* block = nullptr;
  unsigned first_thread = 0;
  Lanes alive = 0;
  std::vector<Group> groups;
  size_t current = 0;           // of groups: which one runs
  bool keeps_current = false;   // whether it goes on before any other does
  std::vector<size_t> running;  // of groups: scratch of the choice
  int64_t priority = 0;         // in the schedule
  std::unique_ptr<std::byte[]> registers;
  std::vector<std::byte> local;  // of its lanes, one after the other

  template <typename T>
  Cell<T>* lanes(Slot slot) {
    return reinterpret_cast<Cell<T>*>(registers.get() + slot);
  }
};

struct Block {
  Grid* grid = nullptr;
  unsigned index = 0;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  std::vector<uint8_t> written;  // for each byte of shared, whether anybody has written it
  unsigned waiting = 0;          // threads at the barrier
  unsigned returned = 0;
  size_t phase = 0;             // at how many barriers for the whole grid it has been
  bool waits_for_grid = false;  // has come to the next one of them; kept up only for counts

  Counts* counts() const;  // of its phase; null: nobody counts
};

inline constexpr size_t kWorkspaceBytes = 64;

struct Grid {
  const Kernel* kernel = nullptr;
  unsigned blocks = 1, threads = 32;  // threads of a block
  const std::byte* args = nullptr;
  uint64_t workspace = 0;  // the address of what grid.sync() of cooperative groups counts in
  Random random{1};
  bool lanes_stay_together = true;        // the rearmost lanes of a warp go on first; otherwise any do
  Races* races = nullptr;                 // null: nobody looks for races
  std::vector<Counts>* counts = nullptr;  // of each phase; null: nobody counts
  uint64_t changes = 0;  // of memory, and of who waits: where nothing changes for long, nobody can go on
};

inline Counts* Block::counts() const { return grid->counts != nullptr ? &(*grid->counts)[phase] : nullptr; }

// Names the kernel, the file, the line, the instruction and the thread.
[[noreturn]] void fail(const Warp& warp, const Instruction& instruction, unsigned lane, std::string_view what);

}  // namespace dgc::ptx
