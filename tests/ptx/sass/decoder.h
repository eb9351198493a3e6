#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/ptx/sass/cubin.h"
#include "tests/ptx/sass/listing.h"
#include "tests/ptx/sass/operand.h"
#include "tests/ptx/sass/operands.h"

namespace dgc::ptx::sass {

Operand without_sign(Operand operand);

// A kernel while its instructions are decoded: where its registers and literals lie.
class Builder {
 public:
  Builder(Kernel& kernel, const Resources& resources);

  const Resources& resources() const { return resources_; }
  Slot of_register(Register reg);
  Slot of_literal(uint32_t bits);
  Slot of_constant(uint64_t offset);   // in constant bank 0; kNoSlot: it is not known what lies there
  Slot dump() const { return dump_; }  // for what nobody reads
  Slot add(bool wide = false);

  const Operands* keep(const Operands& operands) { return &owned_->operands.emplace_back(operands); }
  std::string_view keep(std::string text) { return owned_->texts.emplace_back(std::move(text)); }
  void add(const Instruction& instruction) { kernel_.code.push_back(instruction); }
  void add_jump(uint64_t address) { jumps_.emplace_back(kernel_.code.size(), address); }  // of the next instruction
  void begin_address() { kernel_.by_address.push_back(static_cast<uint32_t>(kernel_.code.size())); }
  void finish();  // sets the targets of jumps

 private:
  struct Owned {
    std::deque<Operands> operands;
    std::deque<std::string> texts;
  };

  Kernel& kernel_;
  const Resources& resources_;
  std::shared_ptr<Owned> owned_;
  std::map<Register, Slot> registers_;
  std::map<uint32_t, Slot> literals_;
  std::map<uint64_t, Slot> constants_;
  std::vector<std::pair<size_t, uint64_t>> jumps_;  // instruction and address
  Slot dump_ = kNoSlot;
};

// A line on its way to become instructions: the families of opcodes below take its modifiers and operands from here.
class Decoder {
 public:
  Decoder(Builder& builder, const std::string& file, const Function& function, size_t number);

  Builder& builder() { return builder_; }
  Instruction& instruction() { return instruction_; }
  // The opcode's name without its modifiers; of the uniform datapath's without the U.
  bool is(std::string_view name) const { return name_ == name; }
  bool uniform() const { return instruction_.flow == Flow::uniform; }
  bool takes(std::string_view modifier);                                            // false where there is none
  std::string_view take_one_of(std::initializer_list<std::string_view> modifiers);  // empty where there is none
  void expect(std::string_view modifier);
  size_t operands() const { return operands_.size(); }
  const Operand& operand(size_t index) const;
  // Reads the operands by a letter for each: r a register that is written, R a pair of them, p a predicate that is
  // written, o likewise where there is one; a what is read as 32 bits, A as 64 in a pair, f as a float, q as a
  // predicate.
  void take(std::string_view shape);
  // By itself: the cells of an operand that is read, which must have no sign.
  Slot read(const Operand& operand);
  Slot read_high(const Operand& operand);  // of a pair
  void take_address(const Operand& operand);
  Slot take_register(const Operand& operand, Bank bank);  // that is written; of RZ and the like one that nobody reads
  uint64_t take_target(const Operand& operand) const;     // of a branch
  void add_source(const Source& source);
  void add_result(Slot slot);

  // Adds the instruction, which does what the operation says.
  void emit(const Operation& operation);
  void emit(Execute execute);
  // Adds another one under the same guard: what computes something for it before, or after it was added.
  void emit_part(Instruction part);
  void emit_part(const Operation& operation, const Operands& operands);
  // All modifiers and operands must have been taken.
  void check_taken() const;
  [[noreturn]] void fail(std::string_view what) const;  // names the file, the instruction and the kernel

 private:
  void take_guard(std::string predicate);
  void take_result(const Operand& operand, char letter);
  void take_source(const Operand& operand, char letter);
  uint32_t float_bits(const Operand& operand) const;

  Builder& builder_;
  const std::string& file_;
  const Function& function_;
  std::optional<uint64_t> encoding_;  // its lower half
  std::string_view name_;
  std::vector<std::string_view> modifiers_;  // that are not taken yet
  std::vector<Operand> operands_;
  Instruction instruction_;
  Operands taken_;
  size_t results_ = 0, sources_ = 0;
};

// Each emits the instruction and returns true, or returns false where the opcode is none of its own.
bool decode_integers(Decoder&);  // IADD3, IMAD, LEA, SHF, LOP3, PRMT, POPC and so on
bool decode_logic(Decoder&);     // ISETP, SEL, PLOP3, P2R
bool decode_floats(Decoder&);    // FADD, FSETP, MUFU, conversions
bool decode_moves(Decoder&);     // MOV, LDC, S2R, R2UR
bool decode_memory(Decoder&);    // loads, stores, atomics, fences
bool decode_exchange(Decoder&);  // SHFL, VOTE, REDUX
bool decode_flow(Decoder&);      // branches, barriers, calls

}  // namespace dgc::ptx::sass
