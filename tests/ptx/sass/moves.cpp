// Moves between registers, out of the constant bank, and of what a thread knows of itself.
#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <string>

#include "tensor/half.h"
#include "tests/ptx/interpreter/access.h"
#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

Operation copy() {
  return each_lane<1>([](uint32_t a) { return a; });
}
Operation copy_pair() {
  return each_lane<2>([](uint32_t low, uint32_t high) { return std::tuple<uint32_t, uint32_t>{low, high}; });
}

// LDC.U8 and .U16: some bytes of a word.
template <uint32_t kMask>
Operation part_of_word() {
  return each_lane<2>([](uint32_t word, uint32_t shift) { return word >> shift & kMask; });
}

// LDC.64 R2, c[0x0][R4+0x210]: of an array among the arguments, which to a launch of PTX have a memory of their own.
void emit_indexed(Decoder& d, const Operand& from, std::string_view size) {
  Instruction& i = d.instruction();
  i.space = Space::param;
  i.wide_base = false;
  Operand index = from;
  index.kind = Operand::Kind::reg;
  i.base = d.read(index);
  i.offset = from.offset - kParamBase;
  i.count = size == "64" ? 2 : 1;
  Operand to = d.operand(0);
  for (unsigned n = 0; n < i.count; ++n, ++to.reg.number) {
    i.elements.at(n) = d.take_register(to, d.uniform() ? Bank::uniform : Bank::general);
  }
  d.emit(load_of(size == "U8" ? Type::u8 : size == "U16" ? Type::u16 : Type::b32, false));
}

bool decode_ldc(Decoder& d) {
  const Operand& from = d.operand(1);
  const std::string_view size = d.take_one_of({"64", "U8", "U16"});
  if (from.kind != Operand::Kind::constant || d.operands() != 2) d.fail("a constant was expected");
  if (from.based) {
    emit_indexed(d, from, size);
  } else if (size == "64") {
    d.take("RA");
    d.emit(copy_pair());
  } else if (size.empty()) {
    d.take("ra");
    d.emit(copy());
  } else {
    const uint64_t in_word = from.offset % 4;
    Operand word = from;
    word.offset -= in_word;
    d.add_result(d.take_register(d.operand(0), d.uniform() ? Bank::uniform : Bank::general));
    d.add_source({.slot = d.read(word)});
    d.add_source({.slot = d.builder().of_literal(static_cast<uint32_t>(8 * in_word))});
    d.emit(size == "U8" ? part_of_word<0xff>() : part_of_word<0xffff>());
  }
  return true;
}

// A special register that has the value f(warp, lane).
template <typename F>
Execute special(F) {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    set_lanes<uint32_t>(warp, i.to, lanes, [&](unsigned lane) { return static_cast<uint32_t>(F{}(warp, lane)); });
  };
}

// All grids and blocks have one dimension, and no block belongs to a cluster.
Execute special_of(std::string_view name) {
  if (name == "SR_TID.X") return special([](const Warp& w, unsigned lane) { return w.first_thread + lane; });
  if (name == "SR_CTAID.X") return special([](const Warp& w, unsigned) { return w.block->index; });
  if (name == "SR_LANEID") return special([](const Warp&, unsigned lane) { return lane; });
  if (name == "SR_LTMASK") return special([](const Warp&, unsigned lane) { return (1u << lane) - 1; });
  for (const char* zero : {"SR_TID.Y", "SR_TID.Z", "SR_CTAID.Y", "SR_CTAID.Z", "SR_CgaCtaId"}) {
    if (name == zero) return special([](const Warp&, unsigned) { return 0; });
  }
  return nullptr;
}

// S2UR is for the warp, and what differs between its lanes no number of it.
bool decode_special(Decoder& d) {
  const bool for_warp = d.is("S2UR");
  const std::string_view name = d.operand(1).text;
  const Execute execute = special_of(name);
  if (execute == nullptr || d.operands() != 2) d.fail("a special register that is not known");
  if (for_warp && (name.starts_with("SR_TID.X") || name.starts_with("SR_L"))) d.fail("lanes that differ");
  if (for_warp) d.instruction().flow = Flow::uniform;
  d.instruction().to = d.take_register(d.operand(0), for_warp ? Bank::uniform : Bank::general);
  d.emit(execute);
  return true;
}

// To a register of the warp, from one of which all lanes must have the same.
void to_uniform(Warp& warp, const Instruction& i, Lanes lanes) {
  const uint32_t* const cells = warp.lanes<uint32_t>(i.from[0]);
  const uint32_t value = cells[std::countr_zero(lanes)];
  for_lanes(lanes, [&](unsigned lane) {
    if (cells[lane] != value) fail(warp, i, lane, "lanes differ that are to be one number of the warp");
  });
  set_lanes<uint32_t>(warp, i.to, ~Lanes{0}, [&](unsigned) { return value; });
}

bool decode_r2ur(Decoder& d) {
  if (d.operands() != 2) d.fail("a wrong number of operands");
  d.instruction().to = d.take_register(d.operand(0), Bank::uniform);
  d.instruction().from[0] = d.read(d.operand(1));
  d.emit(to_uniform);
  return true;
}

uint16_t half_of(const Decoder& d, const Operand& operand) {
  const std::string text(operand.text);
  char* end = nullptr;
  const float value = std::strtof(text.c_str(), &end);
  const uint16_t bits = float_to_half(value);
  if (operand.kind != Operand::Kind::decimal || *end != '\0' || half_to_float(bits) != value)
    d.fail(fmt::format("'{}', where a number of 16 bits was expected,", text));
  return bits;
}

// Of the arithmetic on pairs of halves only what ptxas makes to set a register: R1, -RZ, RZ, upper, lower.
bool decode_hfma2(Decoder& d) {
  d.takes("MMA");
  const bool sets = d.operands() == 5 && d.operand(1).text == "-RZ" && d.operand(2).text == "RZ";
  if (!sets) d.fail("arithmetic of pairs of halves");
  const uint32_t upper = half_of(d, d.operand(3)), lower = half_of(d, d.operand(4));
  d.add_result(d.take_register(d.operand(0), Bank::general));
  d.add_source({.slot = d.builder().of_literal(upper << 16 | lower)});
  d.emit(copy());
  return true;
}

}  // namespace

bool decode_moves(Decoder& d) {
  if (d.is("LDC")) return decode_ldc(d);
  if (d.is("S2R") || d.is("S2UR")) return decode_special(d);
  if (d.is("R2UR")) return decode_r2ur(d);
  if (d.is("HFMA2")) return decode_hfma2(d);
  if (d.is("MOV")) {
    d.take("ra");
    d.emit(copy());
  } else if (d.is("CS2R")) {
    if (d.operands() != 2 || d.operand(1).text != "SRZ") d.fail("a special register that is not known");
    Operand high = d.operand(0);
    if (!is_constant(high.reg)) ++high.reg.number;
    d.add_result(d.take_register(d.operand(0), Bank::general));
    d.add_result(d.take_register(high, Bank::general));
    for (int n = 0; n < 2; ++n) d.add_source({.slot = d.builder().of_literal(0)});
    d.emit(copy_pair());
  } else {
    return false;
  }
  return true;
}

}  // namespace dgc::ptx::sass
