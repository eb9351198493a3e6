#include "tests/ptx/interpreter/decoder.h"

#include <fmt/format.h>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/memory.h"

namespace dgc::ptx {

SlotMap::SlotMap(Kernel& kernel) : kernel_(kernel) {
  for (const Type type : kernel.program.registers) registers_.push_back(add(bits_of(type) == 64));
}

Slot SlotMap::add(bool wide) {
  const Slot slot = kernel_.register_bytes;
  kernel_.register_bytes += kWarpSize * (wide ? 8 : 4);
  return slot;
}

Slot SlotMap::of_literal(uint64_t bits, bool wide) {
  const auto [found, fresh] = literals_.try_emplace({bits, wide}, Slot{0});
  if (fresh) {
    found->second = add(wide);
    (wide ? kernel_.constants64 : kernel_.constants32).emplace_back(found->second, bits);
  }
  return found->second;
}

Decoder::Decoder(const Statement& statement, Kernel& kernel, SlotMap& slots)
    : statement_(statement), kernel_(kernel), slots_(slots) {
  instruction_.line = statement.line;
  instruction_.text = statement.text;
  if (!statement.guarded) return;
  instruction_.guarded = true;
  instruction_.guard_negated = statement.guard_negated;
  instruction_.guard = slots.of_register(statement.guard);
  if (kernel.program.registers[statement.guard] != Type::pred) fail("the guard is no predicate");
}

const Operand& Decoder::operand(size_t index) const {
  if (index >= operands()) fail("too few operands");
  return statement_.operands[index];
}

Slot Decoder::read(const Operand& operand, unsigned bits) {
  if (operand.negated) fail("an operand that is negated here is not known");
  uint64_t value = operand.value;
  switch (operand.kind) {
    case Operand::Kind::reg:
      return write(operand, bits);
    case Operand::Kind::variable:
      value = address_of(operand.variable);
      break;
    case Operand::Kind::number:
      if (bits == 1) value = value != 0 ? 1 : 0;  // PTX writes true as -1
      break;
    default:
      fail("an operand of this kind is not known here");
  }
  return slots_.of_literal(bits == 64 ? value : value & ((uint64_t{1} << bits) - 1), bits == 64);
}

Slot Decoder::write(const Operand& operand, unsigned bits) {
  if (operand.kind == Operand::Kind::discard) return slots_.add(bits == 64);
  if (operand.kind != Operand::Kind::reg) fail("a register was expected");
  const unsigned held = bits_of(kernel_.program.registers[operand.reg]);
  // A type of 8 bits is held in a register of 16 or 32; otherwise cells of one size would be read as those of another.
  if ((held == 64) != (bits == 64) || (held == 1) != (bits == 1) || held < bits) {
    fail(fmt::format("{} has {} bits, not {}", operand.text, held, bits));
  }
  return slots_.of_register(operand.reg);
}

void Decoder::take(unsigned to_bits, std::initializer_list<unsigned> from_bits) {
  if (operands() != from_bits.size() + 1) fail("a wrong number of operands");
  instruction_.to = write(operand(0), to_bits);
  size_t index = 0;
  for (const unsigned bits : from_bits) {
    instruction_.from.at(index) = read(operand(index + 1), bits);
    ++index;
  }
}

void Decoder::take_address(const Operand& operand) {
  if (operand.kind != Operand::Kind::address) fail("an address was expected");
  instruction_.offset = operand.value;
  if (operand.based) {
    instruction_.base = slots_.of_register(operand.reg);
    instruction_.wide_base = is_wide_register(operand);
  } else {
    instruction_.offset += address_of(operand.variable);
  }
}

void Decoder::take_modes() {
  Instruction& i = instruction_;
  i.flush = has("ftz");
  i.saturate = has("sat");
  if (has("rz") || has("rzi")) i.rounding = Rounding::zero;
  if (has("rm") || has("rmi")) i.rounding = Rounding::down;
  if (has("rp") || has("rpi")) i.rounding = Rounding::up;
}

bool Decoder::is_wide_register(const Operand& operand) const {
  return bits_of(kernel_.program.registers[operand.reg]) == 64;
}

uint64_t Decoder::address_of(const Variable& variable) const {
  if (variable.space != Space::global && variable.space != Space::constant) return variable.address;
  return reinterpret_cast<uint64_t>(kernel_.program.constants.data()) + variable.address;
}

void Decoder::fail(std::string_view what) const {
  throw_ptx_error("{}:{}: {} in '{}'", kernel_.program.file, statement_.line, what, statement_.text);
}

}  // namespace dgc::ptx
