// Where lanes go on, part and meet. BSSY notes in a barrier register which lanes are together, BSYNC waits for them; so
// each lane has the mask of those that it parted from.
#include <bit>

#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

void nothing_happens(Warp&, const Instruction&, Lanes) {}

void note_lanes(Warp& warp, const Instruction& i, Lanes lanes) {
  set_lanes<uint32_t>(warp, i.to, lanes, [&](unsigned) { return lanes; });
}

// BREAK: these lanes will not come to the BSYNC, for which no other needs to wait for them.
void leave_meeting(Warp& warp, const Instruction& i, Lanes lanes) {
  uint32_t* const masks = warp.lanes<uint32_t>(i.to);
  Lanes all = 0;
  for_lanes(lanes, [&](unsigned lane) { all |= masks[lane]; });
  for_lanes(all, [&](unsigned lane) { masks[lane] &= ~lanes; });
}

void check_zero(Warp& warp, const Instruction& i, Lanes lanes) {
  for_lanes(lanes, [&](unsigned lane) {
    if (warp.lanes<uint32_t>(i.from[0])[lane] != 0) fail(warp, i, lane, "a barrier that is not the one of all threads");
  });
}

void add_jump(Decoder& d, const Operand& target) {
  d.builder().add_jump(d.take_target(target));
  d.emit(nothing_happens);
}

// BRA L; BRA P0, L, which goes there where the guard and P0 are true; BRA.DIV UR0, L, where not all lanes of UR0 are
// here; and BRA.U, where the guard is true for all that are here. No manual says so of BRA.U. What ptxas puts behind it
// does: first what only some lanes need and does no harm to the others, then the same branch once more, without U.
void decode_branch(Decoder& d) {
  Instruction& i = d.instruction();
  i.flow = Flow::branch;
  if (d.takes("DIV")) {
    i.flow = Flow::branch_if_apart;
    i.members = d.read(d.operand(0));
    if (d.operands() != 2 || i.guarded) d.fail("a branch of an unknown form");
    return add_jump(d, d.operand(1));
  }
  if (d.takes("U")) i.flow = Flow::branch_if_all;
  if (d.operands() == 2) {
    const Slot both = d.builder().add();
    const Operand& other = d.operand(0);
    Operands operands;
    operands.to[0] = both;
    operands.from[0] = {.slot = i.guarded ? i.guard : d.builder().of_literal(1), .flip = i.guard_negated ? 1u : 0u};
    operands.from[1] = {.slot = d.read(without_sign(other)), .flip = other.inverted ? 1u : 0u};
    i.guarded = false;
    d.emit_part(each_lane<2>([](bool a, bool b) { return a && b; }), operands);
    i.guarded = true;
    i.guard_negated = false;
    i.guard = both;
    return add_jump(d, d.operand(1));
  }
  if (d.operands() != 1) d.fail("a branch of an unknown form");
  add_jump(d, d.operand(0));
}

void decode_return(Decoder& d) {
  d.expect("REL");
  d.expect("NODEC");
  if (d.operands() != 2 || d.take_target(d.operand(1)) != 0) d.fail("a return into another function");
  Instruction& i = d.instruction();
  i.flow = Flow::jump;
  i.base = d.read(d.operand(0));
  i.base_high = d.read_high(d.operand(0));
  d.emit(nothing_happens);
}

// BAR.SYNC 0x0: __syncthreads(). Where a register says which barrier, it must say the same.
void decode_block_barrier(Decoder& d) {
  d.expect("SYNC");
  d.expect("DEFER_BLOCKING");
  Instruction& i = d.instruction();
  if (i.guarded) d.fail("a guarded barrier");
  if (d.operands() == 2) {
    Instruction check;
    check.execute = check_zero;
    check.from[0] = d.read(d.operand(0));
    d.emit_part(check);
  } else if (d.operands() != 1 || d.operand(0).text != "0x0") {
    d.fail("a barrier that is not the one of all threads");
  }
  i.flow = Flow::barrier;
  i.aligned = true;
  d.emit(nothing_happens);
}

// WARPSYNC.ALL; WARPSYNC.COLLECTIVE R1, L, where lanes do one thing together up to ENDCOLLECTIVE, behind which lies L.
void decode_warpsync(Decoder& d) {
  const bool collective = d.takes("COLLECTIVE"), all = d.takes("ALL");
  if (d.operands() != (collective ? 1u : 0u) + (all ? 0u : 1u)) d.fail("a wrong number of operands");
  Instruction& i = d.instruction();
  i.flow = Flow::lanes_together;
  i.spares_absent = all;
  i.members = all ? d.builder().of_literal(~0u) : d.read(d.operand(0));
  d.emit(nothing_happens);
}

}  // namespace

bool decode_flow(Decoder& d) {
  Instruction& i = d.instruction();
  if (d.is("BRA")) {
    decode_branch(d);
  } else if (d.is("CALL")) {
    d.expect("REL");
    d.expect("NOINC");
    if (d.operands() != 1) d.fail("a call of an unknown form");
    i.flow = Flow::branch;
    add_jump(d, d.operand(0));
  } else if (d.is("RET")) {
    decode_return(d);
  } else if (d.is("EXIT")) {
    i.flow = Flow::exit;
    d.emit(nothing_happens);
  } else if (d.is("BPT")) {
    d.expect("TRAP");
    i.flow = Flow::trap;
    d.emit(nothing_happens);
  } else if (d.is("BAR")) {
    decode_block_barrier(d);
  } else if (d.is("WARPSYNC")) {
    decode_warpsync(d);
  } else if (d.is("BSSY")) {
    i.to = d.take_register(d.operand(0), Bank::barrier);
    d.emit(note_lanes);
  } else if (d.is("BREAK")) {
    i.to = d.take_register(d.operand(0), Bank::barrier);
    d.emit(leave_meeting);
  } else if (d.is("BSYNC")) {
    i.flow = Flow::lanes_together;
    i.spares_absent = true;
    i.members = d.take_register(d.operand(0), Bank::barrier);
    d.emit(nothing_happens);
  } else if (d.is("ENDCOLLECTIVE") || d.is("YIELD") || d.is("NOP")) {
    d.emit(nothing_happens);
  } else {
    return false;
  }
  return true;
}

}  // namespace dgc::ptx::sass
