#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/emulation/block.h"

namespace dgc::emulation {

// Which block starts next and which thread runs next: any order that a GPU may take, drawn from a seed, so that it can
// be repeated.
class Schedule {
 public:
  Schedule(unsigned blocks, uint64_t seed);

  // The index of the block to start before another thread runs; none while enough of them live.
  std::optional<unsigned> next_block(size_t live);
  bool wants_block(size_t live) const { return started_ < order_.size() && (live < at_once_ || ready_.empty()); }
  void start(Block&);  // all its threads can run
  void end();          // of the block whose thread ran last: its warps are about to go

  void make_runnable(Thread&);
  bool empty() const { return ready_.empty(); }
  Thread& take_next();  // which is then not runnable
  bool interrupts();    // whether the thread that runs gives way at this atomic

 private:
  enum class Pace { turns, warps_apart, blocks_apart };

  uint64_t draw_bits();
  size_t draw(size_t below);
  Warp& next_warp(uint32_t bits);

  uint64_t random_;
  std::vector<unsigned> order_;  // of the blocks
  size_t started_ = 0;
  size_t at_once_ = 1;
  Pace pace_ = Pace::turns;
  std::vector<Warp*> ready_;  // warps with threads that can run
  Warp* favourite_ = nullptr;
};

}  // namespace dgc::emulation
