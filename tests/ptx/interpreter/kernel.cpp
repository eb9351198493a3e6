#include "tests/ptx/interpreter/kernel.h"

#include "tests/ptx/interpreter/decoder.h"

namespace dgc::ptx {
namespace {

void decode_branch(Decoder& d) {
  Instruction& i = d.instruction();
  if (d.operands() != 1 || d.operand(0).kind != Operand::Kind::label) d.fail("a branch without a label is not known");
  i.flow = Flow::branch;
  i.aligned = d.has("uni");
  i.target = static_cast<uint32_t>(d.operand(0).value);
}

// Barrier 0 for all threads of the block: __syncthreads().
void decode_barrier(Decoder& d) {
  Instruction& i = d.instruction();
  const bool zero = d.operands() == 1 && d.operand(0).kind == Operand::Kind::number && d.operand(0).value == 0;
  if (!d.has("sync") || !zero) d.fail("a barrier of another kind than that of __syncthreads is not known");
  if (i.guarded) d.fail("a guarded barrier is not known");
  i.flow = Flow::barrier;
  i.aligned = d.is("bar") || d.has("aligned");
}

// Instructions that decide where lanes go on. False for others.
bool decode_flow(Decoder& d) {
  if (d.is("bra")) {
    decode_branch(d);
  } else if (d.is("ret") || d.is("exit")) {
    d.instruction().flow = Flow::exit;
  } else if (d.is("trap")) {
    d.instruction().flow = Flow::trap;
  } else if ((d.is("bar") || d.is("barrier")) && !d.has("warp")) {
    decode_barrier(d);
  } else {
    return false;
  }
  return true;
}

Instruction decode(const Statement& statement, Kernel& kernel, SlotMap& slots) {
  Decoder d(statement, kernel, slots);
  if (decode_flow(d)) return d.instruction();
  for (const auto family : {decode_logic, decode_moves, decode_memory, decode_exchange, decode_conversions,
                            decode_integers, decode_floats}) {
    // What another family has read of the operands is none of this one's.
    Decoder fresh(statement, kernel, slots);
    const Execute execute = family(fresh);
    if (execute == nullptr) continue;
    fresh.instruction().execute = execute;
    return fresh.instruction();
  }
  d.fail("an instruction that is not known");
}

}  // namespace

Kernel make_kernel(Program program) {
  Kernel kernel;
  kernel.program = std::move(program);
  SlotMap slots(kernel);
  kernel.code.reserve(kernel.program.statements.size());
  for (const Statement& statement : kernel.program.statements) kernel.code.push_back(decode(statement, kernel, slots));
  return kernel;
}

}  // namespace dgc::ptx
