#include "tests/ptx/sass/operand.h"

#include <charconv>
#include <optional>
#include <utility>

#include "tests/ptx/interpreter/error.h"

namespace dgc::ptx::sass {
namespace {

constexpr std::string_view kReuse = ".reuse";  // a hint to the machine's cache of operands

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<uint64_t> parse_digits(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::optional<uint64_t> parse_hexadecimal(std::string_view text) {
  return take_prefix(text, "0x") ? parse_digits(text, 16) : std::nullopt;
}

struct BankName {
  std::string_view letters, constant;
  Bank bank;
  unsigned count;
};
constexpr BankName kBanks[] = {{"UR", "URZ", Bank::uniform, 63},
                               {"UP", "UPT", Bank::uniform_predicate, 7},
                               {"R", "RZ", Bank::general, 255},
                               {"P", "PT", Bank::predicate, 7},
                               {"B", "", Bank::barrier, 16}};

std::optional<Register> parse_register(std::string_view text) {
  for (const BankName& bank : kBanks) {
    if (!bank.constant.empty() && text == bank.constant) return Register{bank.bank, bank.count};
    std::string_view digits = text;
    if (!take_prefix(digits, bank.letters)) continue;
    const auto number = parse_digits(digits, 10);
    if (number && *number < bank.count) return Register{bank.bank, static_cast<unsigned>(*number)};
  }
  return {};
}

// R2.64+UR4+-0x10, within the brackets. False where it has another form.
bool parse_address(std::string_view text, Operand& operand) {
  operand.kind = Operand::Kind::address;
  while (!text.empty()) {
    const size_t plus = text.find('+');
    std::string_view part = text.substr(0, plus);
    text.remove_prefix(plus == std::string_view::npos ? text.size() : plus + 1);
    const bool wide = part.ends_with(".64");
    if (wide) part.remove_suffix(3);
    if (const auto reg = parse_register(part); reg && reg->bank == Bank::uniform && operand.based && !wide) {
      operand.index = *reg;
    } else if (reg && !operand.based) {
      operand.based = true;
      operand.reg = *reg;
      operand.wide = wide;
    } else {
      const bool negative = take_prefix(part, "-");
      const auto number = parse_hexadecimal(part);
      if (!number || wide) return false;
      operand.offset += negative ? ~*number + 1 : *number;
    }
  }
  return true;
}

// What stands in brackets, which the text must begin with: it and they are taken away.
std::optional<std::string_view> take_brackets(std::string_view& text) {
  const size_t end = text.find(']');
  if (!text.starts_with('[') || end == std::string_view::npos) return {};
  const std::string_view inside = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return inside;
}

// c[0x0][0x210] or c[0x0][UR4+0x210]
bool parse_constant(std::string_view text, Operand& operand) {
  take_prefix(text, "c");
  const auto bank = take_brackets(text), offset = take_brackets(text);
  const bool known = bank == "0x0" && offset && parse_address(*offset, operand) && !operand.wide && text.empty();
  operand.kind = Operand::Kind::constant;
  return known;
}

bool parse_number(std::string_view text, Operand& operand) {
  std::string_view digits = text;
  const bool negative = take_prefix(digits, "-");
  if (const auto number = parse_hexadecimal(digits)) {
    operand.kind = Operand::Kind::literal;
    operand.bits = static_cast<uint32_t>(negative ? ~*number + 1 : *number);
    return *number <= 0xffffffffu;
  }
  operand.kind = Operand::Kind::decimal;
  if (!negative) take_prefix(digits, "+");
  return !digits.empty() && (digits[0] >= '0' && digits[0] <= '9');
}

bool parse_plain(std::string_view text, Operand& operand) {
  std::string_view rest = text;
  if (text.starts_with("c[")) return parse_constant(text, operand);
  if (take_prefix(rest, "desc")) {
    const auto descriptor = take_brackets(rest);
    if (!descriptor || !parse_register(*descriptor)) return false;
  }
  if (const auto inside = take_brackets(rest)) return rest.empty() && parse_address(*inside, operand);
  if (text == "+INF" || text == "-INF" || text == "+QNAN" || text == "-QNAN") {
    operand.kind = Operand::Kind::decimal;
    return true;
  }
  if (parse_number(text, operand)) return true;
  if (const auto reg = parse_register(text)) {
    operand.kind = Operand::Kind::reg;
    operand.reg = *reg;
    return true;
  }
  operand.kind = Operand::Kind::word;
  return !text.empty() && (text[0] == '_' || text[0] == '$' || text.starts_with("SR"));
}

// Whether what the sign stands before is a register, and the sign no part of a number.
bool is_sign_of_register(std::string_view text) {
  return text.starts_with("-R") || text.starts_with("-U") || text.starts_with("-|");
}

Operand parse_operand(std::string_view text) {
  Operand operand;
  operand.text = text;
  while (text.ends_with(' ')) text.remove_suffix(1);
  operand.text = text;
  if (text.ends_with(kReuse)) text.remove_suffix(kReuse.size());
  if (is_sign_of_register(text)) operand.negated = take_prefix(text, "-");
  operand.inverted = take_prefix(text, "~") || take_prefix(text, "!");
  if (text.starts_with('|') && text.ends_with('|') && text.size() > 2) {
    operand.absolute = true;
    text = text.substr(1, text.size() - 2);
    if (text.ends_with(kReuse)) text.remove_suffix(kReuse.size());
  }
  if (!parse_plain(text, operand)) throw_ptx_error("the operand '{}' is not known", operand.text);
  return operand;
}

}  // namespace

bool is_constant(Register reg) {
  for (const BankName& bank : kBanks) {
    if (bank.bank == reg.bank) return !bank.constant.empty() && reg.number == bank.count;
  }
  return false;
}

std::vector<Operand> parse_operands(std::string_view text) {
  std::vector<Operand> operands;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    operands.push_back(parse_operand(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return operands;
}

}  // namespace dgc::ptx::sass
