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

unsigned first_lane(Lanes lanes) { return static_cast<unsigned>(std::countr_zero(lanes)); }

// The lanes for which a lane waits at an instruction.
Lanes members_of(Warp& warp, const Instruction& i, unsigned lane) {
  const Lanes members = warp.lanes<uint32_t>(i.members)[lane];
  return i.spares_absent ? members & warp.alive : members;
}

// The lanes that must be at a group's instruction before it is executed. At a barrier these are all that have not
// returned.
Lanes needed(Warp& warp, const Group& group) {
  const Instruction& i = instruction_of(warp, group);
  return i.flow == Flow::barrier ? warp.alive : members_of(warp, i, first_lane(group.lanes));
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
    warp.groups.push_back({at, wanted, State::runs});
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
  if (warp.groups.size() > 1 && !grid.kernel->lanes_meet_where_told) merge_groups(warp, grid.lanes_stay_together);
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
  if (i.aligned) fail(warp, i, first_lane(taken), "lanes part at a branch that is called uniform");
  group.lanes &= ~taken;
  warp.groups.push_back({i.target, taken, State::runs});  // from here on `group` may be elsewhere
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

// Once others of the current group have been split off: those that the guard keeps from the instruction go on.
void leave_behind(Warp& warp) {
  if (warp.groups[warp.current].lanes != 0) {
    ++warp.groups[warp.current].at;
  } else {
    warp.groups.erase(warp.groups.begin() + static_cast<std::ptrdiff_t>(warp.current));
  }
}

// Each lane goes on at the address that it holds.
void jump(Warp& warp, const Instruction& i, Lanes lanes) {
  constexpr uint64_t kInstructionBytes = 16;
  const std::vector<uint32_t>& by_address = warp.block->grid->kernel->by_address;
  const uint32_t *low = warp.lanes<uint32_t>(i.base), *high = warp.lanes<uint32_t>(i.base_high);
  while (lanes != 0) {
    const unsigned first = first_lane(lanes);
    const uint64_t address = uint64_t{high[first]} << 32 | low[first];
    if (address % kInstructionBytes != 0 || address / kInstructionBytes >= by_address.size()) {
      fail(warp, i, first, fmt::format("a jump to {:#x}, where no instruction is,", address));
    }
    Lanes same = 0;
    for_lanes(lanes,
              [&](unsigned lane) { same |= Lanes{low[lane] == low[first] && high[lane] == high[first]} << lane; });
    split_off(warp, {by_address[address / kInstructionBytes], same, State::runs});
    lanes &= ~same;
  }
  leave_behind(warp);
}

// The lanes of the current group come to an instruction that waits for others. True where none needs to wait.
bool come_together(Warp& warp, const Instruction& i, Lanes lanes) {
  const Group before = warp.groups[warp.current];
  const Lanes first = members_of(warp, i, first_lane(lanes));
  Lanes differing = 0;
  for_lanes(lanes, [&](unsigned lane) {
    const Lanes members = members_of(warp, i, lane);
    if ((members >> lane & 1) == 0) fail(warp, i, lane, "a lane is not in its own mask");
    differing |= members ^ first;
    if ((members & ~warp.alive) != 0) fail(warp, i, lane, "the mask names lanes that are not there, or have returned");
  });
  if (differing == 0 && lanes == first && lanes == before.lanes) {
    i.execute(warp, i, lanes);
    ++warp.groups[warp.current].at;
    return true;
  }
  Lanes rest = lanes;
  while (rest != 0) {
    const Lanes mask = members_of(warp, i, first_lane(rest));
    Lanes same = 0;
    for_lanes(rest, [&](unsigned lane) { same |= Lanes{members_of(warp, i, lane) == mask} << lane; });
    split_off(warp, {before.at, same, State::waits_for_lanes});
    rest &= ~same;
  }
  leave_behind(warp);
  return false;
}

// Whether another group may go on before the current one does.
bool changes_group(Warp& warp, const Instruction& last, bool rearmost) {
  if (warp.groups.size() == 1) return false;
  if (!rearmost) return last.flow == Flow::branch || warp.block->grid->random.below(8) == 0;
  // A group at the same instruction becomes one with the current one, but where they meet where they are told alone.
  const uint32_t at = warp.groups[warp.current].at + (warp.block->grid->kernel->lanes_meet_where_told ? 0 : 1);
  return std::ranges::any_of(warp.groups, [&](const Group& g) {
    return &g != &warp.groups[warp.current] && g.state == State::runs && g.at < at;
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
  if (!warp.keeps_current && !choose_group(warp, rearmost)) return;
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
        if (lanes != 0) fail(warp, i, first_lane(lanes), "the kernel has trapped");
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
          if (grid.kernel->lanes_meet_where_told)
            fail(warp, i, first_lane(group.lanes), "lanes come to a barrier without the rest of their warp");
          group.state = State::waits_for_lanes;
        } else {
          arrive(warp, group);
        }
        stays = false;
        break;
      case Flow::uniform:
        if (lanes != 0) i.execute(warp, i, ~Lanes{0});
        ++group.at;
        break;
      case Flow::branch_if_apart:
        group.at = group.lanes == members_of(warp, i, first_lane(group.lanes)) ? group.at + 1 : i.target;
        break;
      case Flow::branch_if_all:
        group.at = lanes == group.lanes ? i.target : group.at + 1;
        break;
      case Flow::jump:
        jump(warp, i, lanes);
        stays = false;
        break;
    }
    warp.keeps_current =
        grid.kernel->lanes_meet_where_told && (i.flow == Flow::next || i.flow == Flow::uniform) && stays;
    if (warp.keeps_current) continue;
    if ((!stays || changes_group(warp, i, rearmost)) && !choose_group(warp, rearmost)) return;
  }
}

}  // namespace dgc::ptx
