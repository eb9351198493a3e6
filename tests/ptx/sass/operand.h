#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// An operand of SASS as nvdisasm writes it.
namespace dgc::ptx::sass {

enum class Bank : uint8_t { general, uniform, predicate, uniform_predicate, barrier };

struct Register {
  Bank bank = Bank::general;
  unsigned number = 0;
  bool operator==(const Register&) const = default;
  auto operator<=>(const Register&) const = default;
};

inline constexpr Register kTrue{Bank::predicate, 7};  // PT
bool is_constant(Register reg);                       // RZ, URZ, PT or UPT

struct Operand {
  enum class Kind : uint8_t { reg, literal, decimal, constant, address, word };
  Kind kind = Kind::word;
  std::string_view text;  // of a decimal and a word (SR_TID.X, a function's name) all of it
  Register reg;           // also an address's base
  bool negated = false, absolute = false, inverted = false;  // -R1, |R1|, ~R1 or !P1
  uint32_t bits = 0;                                         // of a literal
  uint64_t offset = 0;                                       // of a constant in bank 0, and of an address
  bool based = false, wide = false;                          // whether these have a base, and two registers hold it
  Register index{Bank::uniform, 63};                         // is added to the base
};

// Cuts the operands at their commas. Throws PtxError where one is of an unknown form.
std::vector<Operand> parse_operands(std::string_view text);

}  // namespace dgc::ptx::sass
