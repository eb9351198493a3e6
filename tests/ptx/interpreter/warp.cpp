#include "tests/ptx/interpreter/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "tests/ptx/interpreter/lanes.h"
#include "tests/ptx/interpreter/races.h"

namespace dgc::ptx {
namespace {

using State = Group::State;

const Instruction& instruction_of(const Warp& warp, const Group& group) {
  return warp.block->grid->kernel->code[group.at];
}

Lanes true_lanes(Warp& warp, Slot predicate) {
  const uint32_t* const values = warp.lanes<bool>(predicate);
  Lanes lanes = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) lanes |= (values[lane] & 1) << lane;
  return lanes;
}

// Those lanes of a group whose guard lets them execute the instruction.
Lanes guarded_lanes(Warp& warp, const Instruction& i, Lanes lanes) {
  if (!i.guarded) return lanes;
  const Lanes set = true_lanes(warp, i.guard);
  return lanes & (i.guard_negated ? ~set : set);
}

void begin_phase(Block& block) {
  std::vector<Counts>& phases = *block.grid->counts;
  if (++block.phase == phases.size()) phases.emplace_back();
}

void count_instruction(const Block& block) {
  if (Counts* const counts = block.counts(); counts != nullptr) {
    ++(block.waits_for_grid ? counts->spinning : counts->instructions);
  }
}

void let_block_go_on(Block& block) {
  block.waiting = 0;
  if (Counts* const counts = block.counts(); counts != nullptr) {
    ++counts->barriers;
    if (std::exchange(block.waits_for_grid, false)) begin_phase(block);
  }
  if (block.grid->races != nullptr) block.grid->races->block_barrier(block);
  for (Warp& warp : block.warps) {
    for (Group& group : warp.groups) {
      if (group.state != State::waits_for_block) continue;
      group.state = State::runs;
      ++group.at;
    }
  }
}

void arrive(Warp& warp, Group& group) {
  Block& block = *warp.block;
  group.state = State::waits_for_block;
  block.waiting += static_cast<unsigned>(std::popcount(group.lanes));
  ++block.grid->changes;
  if (block.waiting == block.grid->threads) let_block_go_on(block);
}

// The lanes that must be at a group's instruction before it is executed. At a barrier these are all that have not
// returned.
Lanes needed(const Warp& warp, const Group& group) {
  return instruction_of(warp, group).flow == Flow::barrier ? warp.alive : group.members;
}

// Executes an instruction for which lanes wait, where all have come. False where there is none.
bool meet(Warp& warp) {
  for (const Group& first : warp.groups) {
    if (first.state != State::waits_for_lanes) continue;
    const Lanes wanted = needed(warp, first);
    const uint32_t at = first.at;
    const auto is_part = [&](const Group& g) {
      return g.state == State::waits_for_lanes && g.at == at && needed(warp, g) == wanted;
    };
    Lanes there = 0;
    for (const Group& g : warp.groups) there |= is_part(g) ? g.lanes : 0;
    if (there != wanted) continue;
    std::erase_if(warp.groups, is_part);
    warp.groups.push_back({at, wanted, State::runs, 0});
    Group& group = warp.groups.back();
    const Instruction& i = instruction_of(warp, group);
    if (i.flow == Flow::barrier) {
      arrive(warp, group);
    } else {
      i.execute(warp, i, wanted);
      ++group.at;
    }
    return true;
  }
  return false;
}

void merge_groups(Warp& warp, bool always) {
  auto& groups = warp.groups;
  for (size_t a = 0; a < groups.size(); ++a) {
    for (size_t b = groups.size() - 1; b > a; --b) {
      if (groups[a].at != groups[b].at || groups[a].state != State::runs || groups[b].state != State::runs) continue;
      if (!always && warp.block->grid->random.below(2) != 0) continue;
      groups[a].lanes |= groups[b].lanes;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
    }
  }
}

// The rearmost group goes on, or any. False where all wait.
bool choose_group(Warp& warp, bool rearmost) {
  Grid& grid = *warp.block->grid;
  while (meet(warp)) {
  }
  if (warp.groups.size() > 1) merge_groups(warp, grid.lanes_stay_together);
  std::vector<size_t>& running = warp.running;
  running.clear();
  for (size_t n = 0; n < warp.groups.size(); ++n) {
    if (warp.groups[n].state == State::runs) running.push_back(n);
  }
  if (running.empty()) return false;
  if (rearmost) {
    warp.current = *std::ranges::min_element(running, {}, [&](size_t n) { return warp.groups[n].at; });
  } else {
    warp.current = running[grid.random.below(static_cast<uint32_t>(running.size()))];
  }
  return true;
}

void branch(Warp& warp, Group& group, const Instruction& i, Lanes taken) {
  if (taken == group.lanes) {
    group.at = i.target;
    return;
  }
  ++group.at;
  if (taken == 0) return;
  if (i.aligned)
    fail(warp, i, static_cast<unsigned>(std::countr_zero(taken)), "lanes part at a branch that is called uniform");
  group.lanes &= ~taken;
  warp.groups.push_back({i.target, taken, State::runs, 0});  // from here on `group` may be elsewhere
}

void exit_lanes(Warp& warp, Lanes leaving) {
  Group& group = warp.groups[warp.current];
  warp.alive &= ~leaving;
  warp.block->returned += static_cast<unsigned>(std::popcount(leaving));
  ++warp.block->grid->changes;
  group.lanes &= ~leaving;
  ++group.at;
  if (group.lanes == 0) warp.groups.erase(warp.groups.begin() + static_cast<std::ptrdiff_t>(warp.current));
}

// Splits lanes off that do something else than the rest of the current group.
void split_off(Warp& warp, const Group& part) {
  warp.groups[warp.current].lanes &= ~part.lanes;
  warp.groups.push_back(part);
}

// The lanes of the current group come to an instruction that waits for others. True where none needs to wait.
bool come_together(Warp& warp, const Instruction& i, Lanes lanes) {
  const Group before = warp.groups[warp.current];
  const uint32_t* const members = warp.lanes<uint32_t>(i.members);
  const auto lane_of = [](Lanes some) { return static_cast<unsigned>(std::countr_zero(some)); };
  const Lanes first = members[lane_of(lanes)];
  Lanes differing = 0;
  for_lanes(lanes, [&](unsigned lane) {
    if ((members[lane] >> lane & 1) == 0) fail(warp, i, lane, "a lane is not in its own mask");
    differing |= members[lane] ^ first;
    if ((members[lane] & ~warp.alive) != 0)
      fail(warp, i, lane, "the mask names lanes that are not there, or have returned");
  });
  if (differing == 0 && lanes == first && lanes == before.lanes) {
    i.execute(warp, i, lanes);
    ++warp.groups[warp.current].at;
    return true;
  }
  Lanes rest = lanes;
  while (rest != 0) {
    const Lanes mask = members[lane_of(rest)];
    Lanes same = 0;
    for_lanes(rest, [&](unsigned lane) { same |= Lanes{members[lane] == mask} << lane; });
    split_off(warp, {before.at, same, State::waits_for_lanes, mask});
    rest &= ~same;
  }
  if (warp.groups[warp.current].lanes != 0) {
    ++warp.groups[warp.current].at;  // those that the guard keeps from it
  } else {
    warp.groups.erase(warp.groups.begin() + static_cast<std::ptrdiff_t>(warp.current));
  }
  return false;
}

// Whether another group may go on before the current one does.
bool changes_group(Warp& warp, const Instruction& last, bool rearmost) {
  if (warp.groups.size() == 1) return false;
  if (!rearmost) return last.flow == Flow::branch || warp.block->grid->random.below(8) == 0;
  const uint32_t at = warp.groups[warp.current].at;
  return std::ranges::any_of(warp.groups, [&](const Group& g) {
    return &g != &warp.groups[warp.current] && g.state == State::runs && g.at <= at;
  });
}

}  // namespace

bool can_run(const Warp& warp) {
  return std::ranges::any_of(warp.groups, [](const Group& g) { return g.state == State::runs; });
}

void run(Warp& warp, unsigned instructions) {
  // A group that spins must not keep those from going on for which it waits, so at times the rearmost has no
  // precedence. Counts are those of the rearmost: what they are must not depend on the draw.
  Grid& grid = *warp.block->grid;
  const bool rearmost =
      grid.lanes_stay_together && (warp.groups.size() == 1 || grid.counts != nullptr || grid.random.below(4) != 0);
  if (!choose_group(warp, rearmost)) return;
  const Instruction* const code = grid.kernel->code.data();
  while (instructions-- > 0) {
    Group& group = warp.groups[warp.current];
    const Instruction& i = code[group.at];
    const Lanes lanes = guarded_lanes(warp, i, group.lanes);
    count_instruction(*warp.block);
    bool stays = true;
    switch (i.flow) {
      case Flow::next:
        if (lanes != 0) i.execute(warp, i, lanes);
        ++group.at;
        break;
      case Flow::branch:
        branch(warp, group, i, lanes);
        break;
      case Flow::exit:
        exit_lanes(warp, lanes);
        stays = false;
        break;
      case Flow::trap:
        if (lanes != 0) fail(warp, i, static_cast<unsigned>(std::countr_zero(lanes)), "the kernel has trapped");
        ++group.at;
        break;
      case Flow::lanes_together:
        if (lanes == 0) {
          ++group.at;
        } else {
          stays = come_together(warp, i, lanes);
        }
        break;
      case Flow::barrier:
        if (i.aligned && lanes != warp.alive) {
          group.state = State::waits_for_lanes;
        } else {
          arrive(warp, group);
        }
        stays = false;
        break;
    }
    if ((!stays || changes_group(warp, i, rearmost)) && !choose_group(warp, rearmost)) return;
  }
}

}  // namespace dgc::ptx
