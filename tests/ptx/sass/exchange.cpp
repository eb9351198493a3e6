// What the lanes of a warp do together: those that are at the instruction at the same time, wherever the others are.
#include "tests/ptx/interpreter/exchange.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

// SHFL.UP P0, R1, R2, 0x1, RZ
bool decode_shfl(Decoder& d) {
  if (d.operands() != 5) d.fail("a wrong number of operands");
  Instruction& i = d.instruction();
  i.to_predicate = d.take_register(d.operand(0), Bank::predicate);
  i.to = d.take_register(d.operand(1), Bank::general);
  for (size_t n = 0; n < 3; ++n) i.from.at(n) = d.read(d.operand(n + 2));
  for (const auto& [modifier, direction] :
       {std::pair{"UP", "up"}, {"DOWN", "down"}, {"BFLY", "bfly"}, {"IDX", "idx"}}) {
    if (!d.takes(modifier)) continue;
    d.emit(shuffle_of(direction));
    return true;
  }
  d.fail("a shuffle in an unknown direction");
}

// The lanes for which a predicate is true, and whether there is one. On registers of the warp all cells are written.
template <bool kForWarp>
void vote_any(Warp& warp, const Instruction& i, Lanes lanes) {
  const uint32_t* const cells = warp.lanes<uint32_t>(i.from[0]);
  Lanes votes = 0;
  for_lanes(lanes, [&](unsigned lane) { votes |= Lanes{((cells[lane] & 1) != 0) != i.negate} << lane; });
  const Lanes written = kForWarp ? ~Lanes{0} : lanes;
  set_lanes<uint32_t>(warp, i.to, written, [&](unsigned) { return votes; });
  set_lanes<uint32_t>(warp, i.to_predicate, written, [&](unsigned) { return votes != 0 ? 1u : 0u; });
}

// VOTE.ANY R1, P0, !P1 or VOTE.ANY P0, P1
bool decode_vote(Decoder& d) {
  const bool for_warp = d.is("VOTEU");
  d.expect("ANY");
  const size_t first = d.operands() == 2 ? 0 : 1;
  if (d.operands() != first + 2) d.fail("a wrong number of operands");
  Instruction& i = d.instruction();
  i.to = first == 0 ? d.builder().dump() : d.take_register(d.operand(0), for_warp ? Bank::uniform : Bank::general);
  i.to_predicate = d.take_register(d.operand(first), for_warp ? Bank::uniform_predicate : Bank::predicate);
  i.from[0] = d.read(without_sign(d.operand(first + 1)));
  i.negate = d.operand(first + 1).inverted;
  d.emit(for_warp ? vote_any<true> : vote_any<false>);
  return true;
}

// REDUX.MAX UR1, R2: of numbers without signs.
void greatest(Warp& warp, const Instruction& i, Lanes lanes) {
  const uint32_t* const cells = warp.lanes<uint32_t>(i.from[0]);
  uint32_t result = 0;
  for_lanes(lanes, [&](unsigned lane) { result = std::max(result, cells[lane]); });
  set_lanes<uint32_t>(warp, i.to, ~Lanes{0}, [&](unsigned) { return result; });
}

bool decode_redux(Decoder& d) {
  d.expect("MAX");
  if (d.operands() != 2) d.fail("a wrong number of operands");
  d.instruction().to = d.take_register(d.operand(0), Bank::uniform);
  d.instruction().from[0] = d.read(d.operand(1));
  d.emit(greatest);
  return true;
}

}  // namespace

bool decode_exchange(Decoder& d) {
  if (d.is("SHFL")) return decode_shfl(d);
  if (d.is("VOTE") || d.is("VOTEU")) return decode_vote(d);
  return d.is("REDUX") && decode_redux(d);
}

}  // namespace dgc::ptx::sass
