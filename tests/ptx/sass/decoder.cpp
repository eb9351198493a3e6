#include "tests/ptx/sass/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/names.h"

namespace dgc::ptx::sass {
namespace {

constexpr uint32_t kBytes = 16;  // of an instruction

// Constant bank 0 below the arguments.
enum BankOffset : uint64_t {
  kThreads = 0x0,
  kBlocks = 0xc,
  kBlocksY = 0x10,
  kBlocksZ = 0x14,
  kStack = 0x28,
  kWorkspaceHigh = 0x44,
  kWorkspaceLow = 0x48,
  kDescriptor = 0x208,
  kDescriptorHigh = 0x20c
};

std::vector<std::string_view> split_at_dots(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t dot = std::min(text.find('.'), text.size());
    parts.push_back(text.substr(0, dot));
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return parts;
}

}  // namespace

Operand without_sign(Operand operand) {
  operand.negated = operand.absolute = operand.inverted = false;
  return operand;
}

Builder::Builder(Kernel& kernel, const Resources& resources)
    : kernel_(kernel), resources_(resources), owned_(std::make_shared<Owned>()) {
  kernel.owned = owned_;
  dump_ = add();
}

Slot Builder::add(bool wide) {
  const Slot slot = kernel_.register_bytes;
  kernel_.register_bytes += kWarpSize * (wide ? 8 : 4);
  return slot;
}

Slot Builder::of_register(Register reg) {
  if (is_constant(reg)) return of_literal(reg.bank == Bank::predicate || reg.bank == Bank::uniform_predicate ? 1 : 0);
  const auto [found, fresh] = registers_.try_emplace(reg, Slot{0});
  if (fresh) found->second = add();
  return found->second;
}

Slot Builder::of_literal(uint32_t bits) {
  const auto [found, fresh] = literals_.try_emplace(bits, Slot{0});
  if (fresh) {
    found->second = add();
    kernel_.constants32.emplace_back(found->second, bits);
  }
  return found->second;
}

Slot Builder::of_constant(uint64_t offset) {
  if (offset == kBlocksY || offset == kBlocksZ) return of_literal(1);
  if (offset == kDescriptor || offset == kDescriptorHigh) return of_literal(0);  // how global memory is cached
  if (offset == kStack) return of_literal(resources_.stack_bytes);
  LaunchWord word;
  if (offset == kThreads) {
    word.kind = LaunchWord::Kind::threads;
  } else if (offset == kBlocks) {
    word.kind = LaunchWord::Kind::blocks;
  } else if (offset == kWorkspaceLow) {
    word.kind = LaunchWord::Kind::workspace_low;
  } else if (offset == kWorkspaceHigh) {
    word.kind = LaunchWord::Kind::workspace_high;
  } else if (offset >= kParamBase && offset < kParamBase + resources_.param_bytes && offset % 4 == 0) {
    word.offset = static_cast<uint32_t>(offset - kParamBase);
  } else {
    return kNoSlot;
  }
  const auto [found, fresh] = constants_.try_emplace(offset, Slot{0});
  if (fresh) {
    found->second = add();
    kernel_.launch_words.emplace_back(found->second, word);
  }
  return found->second;
}

void Builder::finish() {
  for (const auto& [at, address] : jumps_) {
    if (address % kBytes != 0 || address / kBytes >= kernel_.by_address.size()) {
      throw_ptx_error("{}: a branch to {:#x}, where no instruction is", kernel_.program.file, address);
    }
    kernel_.code[at].target = kernel_.by_address[address / kBytes];
  }
}

Decoder::Decoder(Builder& builder, const std::string& file, const Function& function, size_t number)
    : builder_(builder), file_(file), function_(function) {
  const Line& line = function.lines[number];
  if (number < builder.resources().code.size()) encoding_ = builder.resources().code[number];
  instruction_.line = static_cast<unsigned>(number + 1);
  instruction_.text = builder.keep(fmt::format("/*{:04x}*/ {}{}{}{}{}", number * kBytes, line.predicate,
                                               line.predicate.empty() ? "" : " ", line.opcode,
                                               line.operands.empty() ? "" : " ", line.operands));
  modifiers_ = split_at_dots(line.opcode);
  name_ = modifiers_.at(0);
  modifiers_.erase(modifiers_.begin());
  // Instructions of the uniform datapath begin with a U. S2UR, R2UR, VOTEU and REDUX, which only write its registers,
  // do not.
  if (name_.starts_with('U')) {
    name_.remove_prefix(1);
    instruction_.flow = Flow::uniform;
  }
  take_guard(line.predicate);
  try {
    operands_ = parse_operands(line.operands);
  } catch (const PtxError& error) {
    fail(error.what());
  }
}

void Decoder::take_guard(std::string predicate) {
  Register guard = kTrue;
  if (!predicate.empty()) {
    if (!predicate.starts_with('@')) fail("a guard of an unknown form");
    predicate.erase(0, 1);
    const std::vector<Operand> parsed = parse_operands(predicate);
    const Operand& operand = parsed.at(0);
    const Bank wanted = uniform() ? Bank::uniform_predicate : Bank::predicate;
    if (operand.kind != Operand::Kind::reg ||
        (operand.reg.bank != wanted && operand.reg.bank != Bank::uniform_predicate))
      fail("a guard of an unknown form");
    instruction_.guarded = true;
    instruction_.guard_negated = operand.inverted;
    instruction_.guard = builder_.of_register(operand.reg);
    guard = operand.reg;
  }
  if (!encoding_) return;
  constexpr unsigned kGuardAt = 12;  // of the encoding's bits: three of the predicate, and whether it is negated
  const unsigned expected = guard.number | (instruction_.guard_negated ? 8u : 0u);
  if ((*encoding_ >> kGuardAt & 15) != expected) fail("a guard that is not the one of the machine code");
}

bool Decoder::takes(std::string_view modifier) {
  const auto found = std::ranges::find(modifiers_, modifier);
  if (found == modifiers_.end()) return false;
  modifiers_.erase(found);
  return true;
}

std::string_view Decoder::take_one_of(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) {
    if (takes(modifier)) return modifier;
  }
  return {};
}

void Decoder::expect(std::string_view modifier) {
  if (!takes(modifier)) fail(fmt::format("this without .{} is not known", modifier));
}

const Operand& Decoder::operand(size_t index) const {
  if (index >= operands_.size()) fail("too few operands");
  return operands_[index];
}

void Decoder::take(std::string_view shape) {
  size_t next = 0;
  for (const char letter : shape) {
    if (letter == 'o') {
      const bool there =
          next < operands_.size() && operands_[next].kind == Operand::Kind::reg &&
          (operands_[next].reg.bank == Bank::predicate || operands_[next].reg.bank == Bank::uniform_predicate);
      if (there) {
        take_result(operands_[next++], 'p');
      } else {
        add_result(builder_.dump());
      }
    } else if (letter == 'r' || letter == 'R' || letter == 'p') {
      take_result(operand(next++), letter);
    } else {
      take_source(operand(next++), letter);
    }
  }
  if (next != operands_.size()) fail("too many operands");
}

void Decoder::take_result(const Operand& operand, char letter) {
  const bool predicate = letter == 'p';
  const Bank bank =
      uniform() ? (predicate ? Bank::uniform_predicate : Bank::uniform) : (predicate ? Bank::predicate : Bank::general);
  add_result(take_register(operand, bank));
  if (letter != 'R') return;
  Operand high = operand;
  if (!is_constant(high.reg)) ++high.reg.number;
  add_result(take_register(high, bank));
}

Slot Decoder::take_register(const Operand& operand, Bank bank) {
  if (operand.kind != Operand::Kind::reg || operand.reg.bank != bank || operand.negated || operand.inverted ||
      operand.absolute)
    fail(fmt::format("'{}', where another kind of register was expected,", operand.text));
  return is_constant(operand.reg) ? builder_.dump() : builder_.of_register(operand.reg);
}

Slot Decoder::read(const Operand& operand) {
  if (operand.negated || operand.absolute || operand.inverted)
    fail(fmt::format("'{}', whose sign is not known here,", operand.text));
  switch (operand.kind) {
    case Operand::Kind::reg:
      if (uniform() && operand.reg.bank != Bank::uniform && operand.reg.bank != Bank::uniform_predicate)
        fail("a register that is not uniform");
      return builder_.of_register(operand.reg);
    case Operand::Kind::literal:
      return builder_.of_literal(operand.bits);
    case Operand::Kind::constant:
      if (operand.based) fail("a constant with an index");
      if (const Slot slot = builder_.of_constant(operand.offset); slot != kNoSlot) return slot;
      fail(fmt::format("a constant at {:#x}, of which nothing is known,", operand.offset));
    default:
      fail(fmt::format("'{}', which is not known here,", operand.text));
  }
}

Slot Decoder::read_high(const Operand& operand) {
  Operand high = operand;
  if (operand.kind == Operand::Kind::reg && !is_constant(operand.reg)) ++high.reg.number;
  if (operand.kind == Operand::Kind::constant) high.offset += 4;
  if (operand.kind == Operand::Kind::literal) high.bits = 0;
  return read(high);
}

void Decoder::take_source(const Operand& operand, char letter) {
  Source source;
  const bool is_predicate = operand.kind == Operand::Kind::reg &&
                            (operand.reg.bank == Bank::predicate || operand.reg.bank == Bank::uniform_predicate);
  if (is_predicate != (letter == 'q')) fail(fmt::format("'{}', which is not known here,", operand.text));
  if (operand.absolute && letter != 'f') fail("an absolute value that is none of a float");
  if (letter == 'f' && operand.kind == Operand::Kind::decimal) {
    source.slot = builder_.of_literal(float_bits(operand));
  } else {
    source.slot = read(without_sign(operand));
  }
  if (letter == 'f') {
    if (operand.inverted) fail("a float that is inverted");
    if (operand.absolute) source.keep = 0x7fffffffu;
    if (operand.negated) source.flip = 0x80000000u;
  } else if (letter == 'q') {
    if (operand.inverted) source.flip = 1;
  } else if (operand.inverted || operand.negated) {
    source.flip = ~0u;
    source.add = operand.negated ? 1 : 0;
  }
  add_source(source);
  if (letter != 'A') return;
  if (operand.inverted || operand.negated) fail("a pair of registers with a sign");
  add_source({.slot = read_high(operand)});
}

void Decoder::add_source(const Source& source) { taken_.from.at(sources_++) = source; }
void Decoder::add_result(Slot slot) { taken_.to.at(results_++) = slot; }

// The text does not say which NaN it is; the machine code does.
uint32_t Decoder::float_bits(const Operand& operand) const {
  constexpr unsigned kLiteralAt = 32;
  const std::string text(operand.text);
  if (text.starts_with("+QNAN") || text.starts_with("-QNAN")) {
    if (!encoding_) fail("a NaN, of which the machine code must say which,");
    const auto bits = static_cast<uint32_t>(*encoding_ >> kLiteralAt);
    if (!std::isnan(std::bit_cast<float>(bits))) fail("a NaN that is none in the machine code");
    return bits;
  }
  char* end = nullptr;
  const float value = std::strtof(text.c_str(), &end);
  if (*end != '\0' && *end != ' ') fail(fmt::format("the number '{}'", text));
  const auto bits = std::bit_cast<uint32_t>(value);
  if (encoding_ && static_cast<uint32_t>(*encoding_ >> kLiteralAt) != bits)
    fail(fmt::format("the number '{}', which is not the one of the machine code,", text));
  return bits;
}

void Decoder::take_address(const Operand& operand) {
  if (operand.kind != Operand::Kind::address) fail("an address was expected");
  instruction_.offset = operand.offset;
  instruction_.wide_base = false;
  if (!operand.based) return;
  Operand base = operand;
  base.kind = Operand::Kind::reg;
  instruction_.base = read(base);
  if (operand.wide) instruction_.base_high = read_high(base);
  if (is_constant(operand.index)) return;
  if (operand.wide) fail("an address of three registers");
  const Slot sum = builder_.add();
  Operands both;
  both.to[0] = sum;
  both.from[0].slot = instruction_.base;
  both.from[1].slot = builder_.of_register(operand.index);
  emit_part(each_lane<2>([](uint32_t a, uint32_t b) { return a + b; }), both);
  instruction_.base = sum;
}

uint64_t Decoder::take_target(const Operand& operand) const {
  if (operand.kind == Operand::Kind::literal) return operand.bits;
  const auto found = builder_.resources().functions.find(std::string(operand.text));
  if (found == builder_.resources().functions.end()) fail("a branch to nowhere");
  return found->second;
}

void Decoder::emit(const Operation& operation) {
  if (operation.results != results_ || operation.sources != sources_) fail("operands that do not fit the instruction");
  instruction_.operands = builder_.keep(taken_);
  emit(operation.execute);
}

void Decoder::emit(Execute execute) {
  check_taken();
  instruction_.execute = execute;
  builder_.add(instruction_);
}

void Decoder::emit_part(const Operation& operation, const Operands& operands) {
  Instruction part;
  part.execute = operation.execute;
  part.operands = builder_.keep(operands);
  emit_part(part);
}

void Decoder::emit_part(Instruction part) {
  part.guarded = instruction_.guarded;
  part.guard_negated = instruction_.guard_negated;
  part.guard = instruction_.guard;
  part.line = instruction_.line;
  part.text = instruction_.text;
  builder_.add(part);
}

void Decoder::check_taken() const {
  if (!modifiers_.empty()) fail(fmt::format("the modifier .{}, which is not known here,", modifiers_[0]));
}

void Decoder::fail(std::string_view what) const {
  throw_ptx_error("{}: {} in '{}' of {}", file_, what, instruction_.text, readable_name(function_.name));
}

}  // namespace dgc::ptx::sass
