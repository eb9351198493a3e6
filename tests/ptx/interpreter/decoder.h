#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/ptx/interpreter/kernel.h"

namespace dgc::ptx {

// Where the registers and the literals of a kernel lie.
class SlotMap {
 public:
  explicit SlotMap(Kernel& kernel);
  Slot of_register(unsigned reg) const { return registers_[reg]; }
  Slot of_literal(uint64_t bits, bool wide);
  Slot add(bool wide);

 private:
  Kernel& kernel_;
  std::vector<Slot> registers_;
  std::map<std::pair<uint64_t, bool>, Slot> literals_;
};

// A statement on its way to become an instruction: the families of opcodes below take its operands from here.
class Decoder {
 public:
  Decoder(const Statement& statement, Kernel& kernel, SlotMap& slots);

  Instruction& instruction() { return instruction_; }
  const Statement& statement() const { return statement_; }
  std::string_view opcode() const { return statement_.opcode[0]; }
  bool is(std::string_view opcode) const { return statement_.opcode[0] == opcode; }
  bool has(std::string_view modifier) const { return statement_.has(modifier); }
  Type type(size_t from_last = 0) const { return statement_.type(from_last); }
  size_t operands() const { return statement_.operands.size(); }
  const Operand& operand(size_t index) const;

  // The slot of an operand that is read as so many bits, or written. Throws PtxError where a register has others.
  Slot read(const Operand& operand, unsigned bits);
  Slot write(const Operand& operand, unsigned bits);
  // Sets `to` to the first operand and `from` to those after it.
  void take(unsigned to_bits, std::initializer_list<unsigned> from_bits);
  void take_address(const Operand& operand);
  // Reads the float modifiers: .rn, .rz, .rm, .rp, .ftz, .sat.
  void take_modes();

  bool is_wide_register(const Operand& operand) const;
  [[noreturn]] void fail(std::string_view what) const;  // names the file, the line and the statement

 private:
  uint64_t address_of(const Variable& variable) const;

  const Statement& statement_;
  Kernel& kernel_;
  SlotMap& slots_;
  Instruction instruction_;
};

// Each family returns null where the opcode, or its modifiers, are none of its own.
Execute decode_integers(Decoder&);     // add, mul, mad, min, shifts, bit fields, popc, prmt and so on, of integers
Execute decode_floats(Decoder&);       // arithmetic of floats
Execute decode_logic(Decoder&);        // setp, selp, and, or, xor, not
Execute decode_moves(Decoder&);        // mov, cvta
Execute decode_conversions(Decoder&);  // cvt
Execute decode_memory(Decoder&);       // ld, st, atom, red, membar, fence
Execute decode_exchange(Decoder&);     // shfl, vote, match, redux, activemask, bar.warp.sync

}  // namespace dgc::ptx
