// Loads, stores, atomics and fences.
#include "tests/ptx/interpreter/access.h"

#include <algorithm>
#include <cstring>

#include "tests/ptx/interpreter/counted_access.h"
#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/lanes.h"
#include "tests/ptx/interpreter/memory.h"
#include "tests/ptx/interpreter/races.h"

namespace dgc::ptx {
namespace {

void check_written(const Warp& warp, const Instruction& i, unsigned lane, uint64_t address, size_t bytes) {
  const auto first = warp.block->written.begin() + static_cast<std::ptrdiff_t>(address);
  if (!std::all_of(first, first + static_cast<std::ptrdiff_t>(bytes), [](uint8_t written) { return written != 0; })) {
    fail(warp, i, lane, "shared memory is read that nobody has written");
  }
}

// Of a load, all its elements, or where it may ask for too many one of them.
void check_one_written(const Warp& warp, const Instruction& i, unsigned lane, uint64_t address, size_t bytes) {
  if (!i.asks_for_more) return check_written(warp, i, lane, address, i.count * bytes);
  const uint8_t* const written = warp.block->written.data() + address;
  if (std::find(written, written + i.count * bytes, 1) == written + i.count * bytes)
    check_written(warp, i, lane, address, bytes);
}

void mark_written(Block& block, uint64_t address, size_t bytes) {
  std::memset(block.written.data() + address, 1, bytes);
}

// T is what lies in memory; it is extended to the register.
template <typename T, bool kWideRegister>
void load(Warp& warp, const Instruction& i, Lanes lanes) {
  using Register = std::conditional_t<kWideRegister, uint64_t, uint32_t>;
  const size_t bytes = sizeof(T) * i.count;
  Races* const races = warp.block->grid->races;
  CountedAccess counted(warp, i, CountedAccess::Kind::load);
  for_lanes(lanes, [&](unsigned lane) {
    const Location from = locate(warp, i, lane, bytes);
    counted.lane(from, bytes);
    if (from.space == Space::shared) check_one_written(warp, i, lane, from.address, sizeof(T));
    if (races != nullptr) races->load(warp, i, lane, from, bytes);
    for (unsigned n = 0; n < i.count; ++n) {
      T value;
      std::memcpy(&value, from.memory + n * sizeof(T), sizeof(T));
      warp.lanes<Register>(i.elements[n])[lane] = static_cast<Register>(value);
    }
  });
}

template <typename T, bool kWideRegister>
void store(Warp& warp, const Instruction& i, Lanes lanes) {
  using Register = std::conditional_t<kWideRegister, uint64_t, uint32_t>;
  const size_t bytes = sizeof(T) * i.count;
  Grid& grid = *warp.block->grid;
  ++grid.changes;
  if (grid.races != nullptr) grid.races->begin_instruction();
  CountedAccess counted(warp, i, CountedAccess::Kind::store);
  for_lanes(lanes, [&](unsigned lane) {
    const Location to = locate(warp, i, lane, bytes);
    counted.lane(to, bytes);
    if (to.space == Space::shared) mark_written(*warp.block, to.address, bytes);
    for (unsigned n = 0; n < i.count; ++n) {
      const T value = static_cast<T>(warp.lanes<Register>(i.elements[n])[lane]);
      std::memcpy(to.memory + n * sizeof(T), &value, sizeof(T));
    }
    if (grid.races != nullptr) grid.races->store(warp, i, lane, to, bytes);
  });
}

Space space_of(const Decoder& d) {
  if (d.has("global")) return Space::global;
  for (const std::string_view part : d.statement().opcode) {
    if (part.starts_with("shared")) return Space::shared;  // shared::cta too
    if (part.starts_with("param")) return Space::param;
  }
  if (d.has("local")) return Space::local;
  return d.has("const") ? Space::constant : Space::generic;
}

Order order_of(const Decoder& d) {
  Order order;
  order.acquire = d.has("acquire") || d.has("acq_rel");
  order.release = d.has("release") || d.has("acq_rel");
  order.strong = order.acquire || order.release || d.has("volatile") || d.has("relaxed");
  return order;
}

// Loads and stores move bits: only the size and, where a register is wider, the sign matter.
using MemoryTypes =
    Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, Half, BFloat, float, double>;
template <typename T>
using Bits = std::conditional_t<
    std::is_integral_v<T>, T,
    std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>>;

Execute decode_load_or_store(Decoder& d) {
  const bool loads = d.is("ld");
  Instruction& i = d.instruction();
  i.space = space_of(d);
  i.order = order_of(d);
  if (i.space == Space::param && !loads) return nullptr;
  d.take_address(d.operand(loads ? 1 : 0));
  const Operand& value = d.operand(loads ? 0 : 1);
  const bool vector = value.kind == Operand::Kind::group;
  const std::vector<Operand> one{value};
  const std::vector<Operand>& elements = vector ? value.parts : one;
  if (elements.size() != (d.has("v4") ? 4u : d.has("v2") ? 2u : 1u)) d.fail("a vector of another size");
  i.count = static_cast<uint8_t>(elements.size());
  const unsigned bits = bits_of(d.type());
  bool wide = bits == 64;
  for (const Operand& element : elements)
    wide = wide || (element.kind == Operand::Kind::reg && d.is_wide_register(element));
  for (size_t n = 0; n < elements.size(); ++n) {
    i.elements[n] = loads ? d.write(elements[n], wide ? 64 : bits) : d.read(elements[n], wide ? 64 : bits);
  }
  return loads ? load_of(d.type(), wide) : store_of(d.type(), wide);
}

// cooperative_groups counts the blocks that have come to a barrier for the whole grid in the grid's workspace.
void count_atomic(Block& block, const Location& at) {
  Counts* const counts = block.counts();
  if (counts == nullptr) return;
  ++(at.space == Space::shared ? counts->shared_atomics : counts->global_atomics);
  if (at.address - block.grid->workspace < kWorkspaceBytes) block.waits_for_grid = true;
}

// What F(old, operand, second operand) returns takes the place of what was there; `to` becomes what was there. The
// lanes come one after the other, in an order that is drawn.
template <typename T, typename F>
Execute atomic(F) {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    Grid& grid = *warp.block->grid;
    const unsigned first = grid.random.below(kWarpSize);
    for (unsigned n = 0; n < kWarpSize; ++n) {
      const unsigned lane = (first + n) % kWarpSize;
      if ((lanes >> lane & 1) == 0) continue;
      const Location at = locate(warp, i, lane, sizeof(T));
      if (at.space == Space::shared) check_written(warp, i, lane, at.address, sizeof(T));
      if (grid.races != nullptr) grid.races->atomic(warp, i, lane, at, sizeof(T));
      count_atomic(*warp.block, at);
      T old;
      std::memcpy(&old, at.memory, sizeof(T));
      const T operand = unpack<T>(warp.lanes<T>(i.from[0])[lane]);
      const T second = i.from[1] == kNoSlot ? T{} : unpack<T>(warp.lanes<T>(i.from[1])[lane]);
      const T value = F{}(old, operand, second);
      if (std::memcmp(&value, &old, sizeof(T)) != 0) ++grid.changes;
      std::memcpy(at.memory, &value, sizeof(T));
      if (i.to != kNoSlot) warp.lanes<T>(i.to)[lane] = pack<T>(old);
    }
  };
}

template <typename T>
Execute atomic_of_type(std::string_view what) {
  if (what == "exch") return atomic<T>([](T, T value, T) { return value; });
  if (what == "add") {
    return atomic<T>([](T old, T value, T) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(old) + static_cast<Unsigned>(value));
    });
  }
  if (what == "min") return atomic<T>([](T old, T value, T) { return old < value ? old : value; });
  if (what == "max") return atomic<T>([](T old, T value, T) { return old < value ? value : old; });
  if (what == "cas") return atomic<T>([](T old, T expected, T value) { return old == expected ? value : old; });
  if (what == "and") return atomic<T>([](T old, T value, T) { return static_cast<T>(old & value); });
  if (what == "or") return atomic<T>([](T old, T value, T) { return static_cast<T>(old | value); });
  if (what == "xor") return atomic<T>([](T old, T value, T) { return static_cast<T>(old ^ value); });
  if (what == "inc") return atomic<T>([](T old, T most, T) { return old >= most ? T{0} : static_cast<T>(old + 1); });
  if (what == "dec") {
    return atomic<T>([](T old, T most, T) { return old == 0 || old > most ? most : static_cast<T>(old - 1); });
  }
  return nullptr;
}

// atom has a result, red has none.
Execute decode_atomic(Decoder& d) {
  Instruction& i = d.instruction();
  const unsigned bits = bits_of(d.type());
  const size_t address = d.is("atom") ? 1 : 0;
  i.space = space_of(d);
  i.order = order_of(d);
  i.order.strong = true;
  if (address == 1) i.to = d.write(d.operand(0), bits);
  d.take_address(d.operand(address));
  i.from[0] = d.read(d.operand(address + 1), bits);
  if (d.has("cas")) i.from[1] = d.read(d.operand(address + 2), bits);
  for (const std::string_view part : d.statement().opcode) {
    if (const Execute execute = atomic_of(part, d.type()); execute != nullptr) return execute;
  }
  return nullptr;
}

void fence(Warp& warp, const Instruction&, Lanes lanes) {
  if (Races* const races = warp.block->grid->races; races != nullptr) races->fence(warp, lanes);
}

}  // namespace

Execute load_of(Type type, bool wide_registers) {
  return for_type(MemoryTypes{}, type, [&](auto t) -> Execute {
    using T = Bits<decltype(t)>;
    if (wide_registers) return &load<T, true>;
    if constexpr (sizeof(T) == 8) {
      return nullptr;
    } else {
      return &load<T, false>;
    }
  });
}

Execute store_of(Type type, bool wide_registers) {
  return for_type(MemoryTypes{}, type, [&](auto t) -> Execute {
    using T = Bits<decltype(t)>;
    if (wide_registers) return &store<T, true>;
    if constexpr (sizeof(T) == 8) {
      return nullptr;
    } else {
      return &store<T, false>;
    }
  });
}

Execute atomic_of(std::string_view what, Type type) {
  return for_type(Types<uint32_t, int32_t, uint64_t, int64_t>{}, type,
                  [&](auto t) { return atomic_of_type<decltype(t)>(what); });
}

Execute decode_memory(Decoder& d) {
  if (d.is("ld") || d.is("st")) return decode_load_or_store(d);
  if (d.is("atom") || d.is("red")) return decode_atomic(d);
  if (d.is("membar") || d.is("fence")) return fence;
  return nullptr;
}

}  // namespace dgc::ptx
