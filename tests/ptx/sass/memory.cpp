// Loads, stores, atomics and fences.
#include "tests/ptx/interpreter/access.h"
#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

struct SpaceName {
  std::string_view opcode;
  Space space;
};
constexpr SpaceName kLoads[] = {
    {"LD", Space::generic}, {"LDG", Space::global}, {"LDS", Space::shared}, {"LDL", Space::local}};
constexpr SpaceName kStores[] = {
    {"ST", Space::generic}, {"STG", Space::global}, {"STS", Space::shared}, {"STL", Space::local}};
constexpr SpaceName kAtomicAccesses[] = {{"ATOM", Space::generic},
                                         {"ATOMG", Space::global},
                                         {"ATOMS", Space::shared},
                                         {"RED", Space::generic},
                                         {"REDG", Space::global}};

void take_scope(Decoder& d) {
  if (d.take_one_of({"GPU", "SYS", "CTA"}).empty()) d.fail("an access without a scope");
}

// .STRONG.GPU is what PTX calls relaxed; acquire and release are instructions of their own, beside it.
void take_order(Decoder& d) {
  if (d.takes("STRONG")) take_scope(d);
}

bool decode_load_or_store(Decoder& d, bool loads, Space space) {
  d.instruction().space = space;
  d.takes("E");   // an address of 64 bits
  d.takes("EF");  // what to keep in the cache
  take_order(d);
  const std::string_view size = d.take_one_of({"64", "128", "U8", "S8", "U16", "S16"});
  if (d.operands() != 2) d.fail("a wrong number of operands");
  d.take_address(d.operand(loads ? 1 : 0));
  Instruction& i = d.instruction();
  i.count = size == "128" ? 4 : size == "64" ? 2 : 1;
  i.asks_for_more = i.count > 1;
  Operand value = d.operand(loads ? 0 : 1);
  for (unsigned n = 0; n < i.count; ++n) {
    const bool zero = !loads && is_constant(value.reg);
    i.elements.at(n) = zero ? d.read(value) : d.take_register(value, Bank::general);
    if (!is_constant(value.reg)) ++value.reg.number;
  }
  Type type = Type::b32;
  if (size == "U8") type = Type::u8;
  if (size == "S8") type = Type::s8;
  if (size == "U16") type = Type::u16;
  if (size == "S16") type = Type::s16;
  d.emit(loads ? load_of(type, false) : store_of(type, false));
  return true;
}

// A number of 64 bits, for what executes on one cell of so many, out of two registers.
Slot packed(Decoder& d, const Operand& operand) {
  const Slot whole = d.builder().add(true);
  Instruction pack;
  pack.execute = [](Warp& warp, const Instruction& i, Lanes lanes) {
    const uint32_t *low = warp.lanes<uint32_t>(i.from[0]), *high = warp.lanes<uint32_t>(i.from[1]);
    set_lanes<uint64_t>(warp, i.to, lanes, [&](unsigned lane) { return uint64_t{high[lane]} << 32 | low[lane]; });
  };
  pack.to = whole;
  pack.from[0] = d.read(operand);
  pack.from[1] = d.read_high(operand);
  d.emit_part(pack);
  return whole;
}

// ATOMS.CAST.SPIN.64 R4, [R1], R4, R6: writes R6 where R4 still lies there; R4 becomes 1 where it did, else 0.
bool decode_cast(Decoder& d) {
  d.expect("SPIN");
  d.expect("64");
  if (d.operands() != 4) d.fail("a wrong number of operands");
  d.take_address(d.operand(1));
  Instruction& i = d.instruction();
  const Slot expected = packed(d, d.operand(2));
  i.from[0] = expected;
  i.from[1] = packed(d, d.operand(3));
  i.to = d.builder().add(true);
  const Execute compare_and_swap = atomic_of("cas", Type::u64);
  d.emit(compare_and_swap);
  Operand high = d.operand(0);
  if (!is_constant(high.reg)) ++high.reg.number;
  Instruction told;
  told.execute = [](Warp& warp, const Instruction& t, Lanes lanes) {
    const uint64_t *before = warp.lanes<uint64_t>(t.from[0]), *wanted = warp.lanes<uint64_t>(t.from[1]);
    set_lanes<uint32_t>(warp, t.to, lanes, [&](unsigned lane) { return before[lane] == wanted[lane] ? 1u : 0u; });
    set_lanes<uint32_t>(warp, t.to_predicate, lanes, [](unsigned) { return 0u; });
  };
  told.from[0] = i.to;
  told.from[1] = expected;
  told.to = d.take_register(d.operand(0), Bank::general);
  told.to_predicate = d.take_register(high, Bank::general);
  d.emit_part(told);
  return true;
}

// ATOMS.POPC.INC.32: each lane adds 1.
bool decode_increment(Decoder& d) {
  d.expect("INC");
  d.expect("32");
  if (d.operands() != 2 || d.operand(0).text != "RZ") d.fail("a count of lanes with a result");
  d.take_address(d.operand(1));
  d.instruction().from[0] = d.builder().of_literal(1);
  d.emit(atomic_of("add", Type::u32));
  return true;
}

struct AtomicName {
  std::string_view modifier, name;
};
constexpr AtomicName kAtomics[] = {{"ADD", "add"}, {"EXCH", "exch"}, {"MIN", "min"}, {"MAX", "max"},
                                   {"AND", "and"}, {"OR", "or"},     {"XOR", "xor"}};

// ATOMG.E.ADD.STRONG.GPU PT, R0, [R2.64], R5; RED has no results.
bool decode_atomic(Decoder& d, Space space) {
  const bool has_result = !d.is("RED") && !d.is("REDG");
  Instruction& i = d.instruction();
  i.space = space;
  if (d.takes("CAST")) return decode_cast(d);
  if (d.takes("POPC")) return decode_increment(d);
  d.takes("E");
  take_order(d);
  const bool wide = d.takes("64");
  const bool has_sign = d.takes("S32");
  std::string_view name;
  for (const AtomicName& known : kAtomics) {
    if (d.takes(known.modifier)) name = known.name;
  }
  const size_t results = !has_result ? 0 : space == Space::shared ? 1 : 2;
  if (d.operands() != results + 2) d.fail("a wrong number of operands");
  if (results == 2 && d.operand(0).text != "PT") d.fail("an atomic with a predicate");
  if (results > 0 && d.operand(results - 1).text != "RZ") {
    if (wide) d.fail("an atomic of 64 bits with a result");
    i.to = d.take_register(d.operand(results - 1), Bank::general);
  }
  d.take_address(d.operand(results));
  const Operand& value = d.operand(results + 1);
  i.from[0] = wide ? packed(d, value) : d.read(value);
  const Execute execute = atomic_of(name, wide ? Type::u64 : has_sign ? Type::s32 : Type::u32);
  if (execute == nullptr) d.fail("an atomic that is not known");
  d.emit(execute);
  return true;
}

void nothing(Warp&, const Instruction&, Lanes) {}

}  // namespace

bool decode_memory(Decoder& d) {
  for (const auto& [opcode, space] : kLoads) {
    if (d.is(opcode)) return decode_load_or_store(d, true, space);
  }
  for (const auto& [opcode, space] : kStores) {
    if (d.is(opcode)) return decode_load_or_store(d, false, space);
  }
  for (const auto& [opcode, space] : kAtomicAccesses) {
    if (d.is(opcode)) return decode_atomic(d, space);
  }
  // Memory is in order here: there are no caches to be cleared, and errors of accesses are thrown at once.
  if (d.is("MEMBAR")) {
    if (d.take_one_of({"ALL", "SC"}).empty()) d.fail("an unknown fence");
    take_scope(d);
  } else if (d.is("CCTL")) {
    d.expect("IVALL");
  } else if (!d.is("ERRBAR") && !d.is("CGAERRBAR")) {
    return false;
  }
  d.emit(nothing);
  return true;
}

}  // namespace dgc::ptx::sass
