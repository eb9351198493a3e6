// What lanes of a warp do together. The warp has brought all lanes here that an instruction's mask names.
#include "tests/ptx/interpreter/exchange.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/lanes.h"
#include "tests/ptx/interpreter/races.h"

namespace dgc::ptx {
namespace {

enum class Direction { up, down, bfly, idx };

// The lane that this one reads, as PTX defines it; the limit holds the bounds of groups of lanes. False where it would
// be outside, and the lane keeps its own value.
template <Direction kDirection>
bool source_lane(unsigned lane, uint32_t by, uint32_t limit, unsigned& source) {
  const unsigned segment = limit >> 8 & 31, bound = limit & 31;
  const unsigned highest = (lane & segment) | (bound & ~segment), lowest = lane & segment;
  by &= 31;
  bool inside = false;
  switch (kDirection) {
    case Direction::up:
      source = lane - by;
      inside = static_cast<int>(source) >= static_cast<int>(highest);
      break;
    case Direction::down:
      source = lane + by;
      inside = source <= highest;
      break;
    case Direction::bfly:
      source = lane ^ by;
      inside = source <= highest;
      break;
    case Direction::idx:
      source = lowest | (by & ~segment);
      inside = source <= highest;
      break;
  }
  if (!inside) source = lane;
  return inside;
}

template <Direction kDirection>
void shuffle(Warp& warp, const Instruction& i, Lanes lanes) {
  std::array<uint32_t, kWarpSize> results{};
  Lanes inside = 0;
  for_lanes(lanes, [&](unsigned lane) {
    unsigned source = lane;
    if (source_lane<kDirection>(lane, warp.lanes<uint32_t>(i.from[1])[lane], warp.lanes<uint32_t>(i.from[2])[lane],
                                source)) {
      inside |= 1u << lane;
    }
    if ((lanes >> source & 1) == 0)
      fail(warp, i, lane, fmt::format("lane {} is read, which the mask does not name", source));
    results[lane] = warp.lanes<uint32_t>(i.from[0])[source];
  });
  for_lanes(lanes, [&](unsigned lane) {
    warp.lanes<uint32_t>(i.to)[lane] = results[lane];
    if (i.to_predicate != kNoSlot) warp.lanes<uint32_t>(i.to_predicate)[lane] = inside >> lane & 1;
  });
}

Execute decode_shuffle(Decoder& d) {
  Instruction& i = d.instruction();
  const Operand& to = d.operand(0);
  if (to.kind == Operand::Kind::group) {
    i.to = d.write(to.parts.at(0), 32);
    i.to_predicate = d.write(to.parts.at(1), 1);
  } else {
    i.to = d.write(to, 32);
  }
  for (size_t n = 0; n < 3; ++n) i.from[n] = d.read(d.operand(n + 1), 32);
  i.members = d.read(d.operand(4), 32);
  for (const std::string_view part : d.statement().opcode) {
    if (const Execute execute = shuffle_of(part); execute != nullptr) return execute;
  }
  return nullptr;
}

enum class Vote { ballot, any, all, uni };

template <Vote kVote>
void vote(Warp& warp, const Instruction& i, Lanes lanes) {
  Lanes votes = 0;
  for_lanes(lanes, [&](unsigned lane) {
    const bool value = warp.lanes<bool>(i.from[0])[lane] != 0;
    if (value != i.negate) votes |= 1u << lane;
  });
  const uint32_t result = kVote == Vote::ballot ? votes
                          : kVote == Vote::any  ? votes != 0
                          : kVote == Vote::all  ? votes == lanes
                                                : votes == lanes || votes == 0;
  for_lanes(lanes, [&](unsigned lane) { warp.lanes<uint32_t>(i.to)[lane] = result; });
}

Execute decode_vote(Decoder& d) {
  Instruction& i = d.instruction();
  Operand value = d.operand(1);
  i.negate = value.negated;
  value.negated = false;
  i.to = d.write(d.operand(0), d.has("ballot") ? 32 : 1);
  i.from[0] = d.read(value, 1);
  i.members = d.read(d.operand(2), 32);
  if (d.has("ballot")) return vote<Vote::ballot>;
  if (d.has("any")) return vote<Vote::any>;
  if (d.has("all")) return vote<Vote::all>;
  return d.has("uni") ? vote<Vote::uni> : nullptr;
}

// Which lanes hold the same value; of .all, whether all do.
template <typename T>
void match(Warp& warp, const Instruction& i, Lanes lanes) {
  const Cell<T>* const values = warp.lanes<T>(i.from[0]);
  std::array<Lanes, kWarpSize> same{};
  for_lanes(lanes,
            [&](unsigned a) { for_lanes(lanes, [&](unsigned b) { same[a] |= Lanes{values[a] == values[b]} << b; }); });
  const bool wants_all = i.negate;
  for_lanes(lanes, [&](unsigned lane) {
    const bool all = same[lane] == lanes;
    warp.lanes<uint32_t>(i.to)[lane] = wants_all && !all ? 0 : same[lane];
    if (i.to_predicate != kNoSlot) warp.lanes<uint32_t>(i.to_predicate)[lane] = all;
  });
}

Execute decode_match(Decoder& d) {
  Instruction& i = d.instruction();
  const Operand& to = d.operand(0);
  const unsigned bits = bits_of(d.type());
  if (to.kind == Operand::Kind::group) {
    i.to = d.write(to.parts.at(0), 32);
    i.to_predicate = d.write(to.parts.at(1), 1);
  } else {
    i.to = d.write(to, 32);
  }
  i.negate = d.has("all");
  i.from[0] = d.read(d.operand(1), bits);
  i.members = d.read(d.operand(2), 32);
  return bits == 64 ? match<uint64_t> : match<uint32_t>;
}

template <typename T, typename F>
Execute reduction(F) {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    const Cell<T>* const values = warp.lanes<T>(i.from[0]);
    T result = unpack<T>(values[std::countr_zero(lanes)]);
    for_lanes(lanes & (lanes - 1), [&](unsigned lane) { result = F{}(result, unpack<T>(values[lane])); });
    for_lanes(lanes, [&](unsigned lane) { warp.lanes<T>(i.to)[lane] = pack<T>(result); });
  };
}

Execute decode_reduction(Decoder& d) {
  Instruction& i = d.instruction();
  i.to = d.write(d.operand(0), 32);
  i.from[0] = d.read(d.operand(1), 32);
  i.members = d.read(d.operand(2), 32);
  return for_type(Types<uint32_t, int32_t>{}, d.type(), [&](auto t) -> Execute {
    using T = decltype(t);
    if (d.has("add")) {
      return reduction<T>([](T a, T b) { return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); });
    }
    if (d.has("min")) return reduction<T>([](T a, T b) { return a < b ? a : b; });
    if (d.has("max")) return reduction<T>([](T a, T b) { return a < b ? b : a; });
    if (d.has("and")) return reduction<T>([](T a, T b) { return a & b; });
    if (d.has("or")) return reduction<T>([](T a, T b) { return a | b; });
    if (d.has("xor")) return reduction<T>([](T a, T b) { return a ^ b; });
    return nullptr;
  });
}

void warp_barrier(Warp& warp, const Instruction&, Lanes lanes) {
  if (Races* const races = warp.block->grid->races; races != nullptr) races->warp_barrier(warp, lanes);
}

void active_lanes(Warp& warp, const Instruction& i, Lanes lanes) {
  set_lanes<uint32_t>(warp, i.to, lanes, [&](unsigned) { return lanes; });
}

}  // namespace

Execute shuffle_of(std::string_view direction) {
  if (direction == "up") return shuffle<Direction::up>;
  if (direction == "down") return shuffle<Direction::down>;
  if (direction == "bfly") return shuffle<Direction::bfly>;
  return direction == "idx" ? shuffle<Direction::idx> : nullptr;
}

Execute decode_exchange(Decoder& d) {
  Instruction& i = d.instruction();
  if (d.is("activemask")) {
    i.to = d.write(d.operand(0), 32);
    return active_lanes;
  }
  i.flow = Flow::lanes_together;
  if (d.is("bar") && d.has("warp")) {
    i.members = d.read(d.operand(0), 32);
    return warp_barrier;
  }
  if (!d.has("sync")) return nullptr;
  if (d.is("shfl")) return decode_shuffle(d);
  if (d.is("vote")) return decode_vote(d);
  if (d.is("match")) return decode_match(d);
  return d.is("redux") ? decode_reduction(d) : nullptr;
}

}  // namespace dgc::ptx
