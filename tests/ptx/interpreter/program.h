#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// A kernel as PTX writes it: names are resolved, but nothing is known of what an opcode does.
namespace dgc::ptx {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64
};

Type parse_type(std::string_view name);  // without the dot; Type::none where it is none
unsigned bits_of(Type type);             // 1 for a predicate, 0 for none

enum class Space : uint8_t { generic, global, shared, local, param, constant };

// Something of the program that has an address in its space: a parameter, or an array.
struct Variable {
  Space space = Space::generic;
  uint64_t address = 0;
};

struct Operand {
  enum class Kind : uint8_t { reg, number, variable, special, address, group, discard, label };
  Kind kind = Kind::discard;
  std::string_view text;  // as it stands in the source; of a special register its name
  unsigned reg = 0;       // reg, or the base of an address: an index into Program::registers
  bool based = false;     // whether an address has a register as its base
  uint64_t value = 0;     // of a number its bits; of an address what is added to the base; of a label the statement
  Variable variable;      // variable, or the base of an address
  bool negated = false;   // !%p1
  std::vector<Operand> parts;  // of {a, b} and of d|p
};

struct Statement {
  unsigned line = 0;
  std::string_view text;
  std::vector<std::string_view> opcode;  // "ld", "global", "b32"
  std::vector<Operand> operands;
  bool guarded = false, guard_negated = false;
  unsigned guard = 0;  // a register

  bool has(std::string_view modifier) const;
  Type type(size_t from_last = 0) const;  // that a modifier names, counted from the last one
};

struct Program {
  std::string name;  // as the object file has it
  std::string file;
  unsigned line = 0;
  std::vector<Type> registers;
  std::vector<Statement> statements;
  unsigned param_bytes = 0, shared_bytes = 0, local_bytes = 0;
  unsigned most_threads = 1024;
  std::vector<std::byte> constants;  // what lies in the module's arrays: Variable::address counts in it
};

}  // namespace dgc::ptx
