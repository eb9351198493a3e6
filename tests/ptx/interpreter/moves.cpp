#include <chrono>

#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/lanes.h"
#include "tests/ptx/interpreter/memory.h"

namespace dgc::ptx {
namespace {

// A special register that has the same value f(warp, lane) however often it is read.
template <typename R, typename F>
Execute special(F) {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    set_lanes<R>(warp, i.to, lanes, [&](unsigned lane) { return static_cast<R>(F{}(warp, lane)); });
  };
}

// All grids and blocks have one dimension.
Execute decode_special(Decoder& d) {
  const std::string_view name = d.operand(1).text;
  const unsigned bits = bits_of(d.type());
  d.instruction().to = d.write(d.operand(0), bits);
  if (bits == 64) {
    if (name != "%globaltimer" && name != "%clock64") return nullptr;
    return [](Warp& warp, const Instruction& i, Lanes lanes) {
      const auto now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
      set_lanes<uint64_t>(warp, i.to, lanes, [&](unsigned) { return static_cast<uint64_t>(now); });
    };
  }
  if (bits != 32) return nullptr;
  if (name == "%tid.x") return special<uint32_t>([](const Warp& w, unsigned lane) { return w.first_thread + lane; });
  if (name == "%ctaid.x") return special<uint32_t>([](const Warp& w, unsigned) { return w.block->index; });
  if (name == "%ntid.x") return special<uint32_t>([](const Warp& w, unsigned) { return w.block->grid->threads; });
  if (name == "%nctaid.x") return special<uint32_t>([](const Warp& w, unsigned) { return w.block->grid->blocks; });
  for (const char* zero : {"%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"}) {
    if (name == zero) return special<uint32_t>([](const Warp&, unsigned) { return 0; });
  }
  for (const char* one : {"%ntid.y", "%ntid.z", "%nctaid.y", "%nctaid.z"}) {
    if (name == one) return special<uint32_t>([](const Warp&, unsigned) { return 1; });
  }
  if (name == "%laneid") return special<uint32_t>([](const Warp&, unsigned lane) { return lane; });
  if (name == "%lanemask_eq") return special<uint32_t>([](const Warp&, unsigned lane) { return 1u << lane; });
  if (name == "%lanemask_lt") return special<uint32_t>([](const Warp&, unsigned lane) { return (1u << lane) - 1; });
  if (name == "%lanemask_le") return special<uint32_t>([](const Warp&, unsigned lane) { return (2u << lane) - 1; });
  if (name == "%lanemask_gt") return special<uint32_t>([](const Warp&, unsigned lane) { return ~((2u << lane) - 1); });
  if (name == "%lanemask_ge") return special<uint32_t>([](const Warp&, unsigned lane) { return ~((1u << lane) - 1); });
  // The two halves of the address at which cooperative groups finds what grid.sync() counts in.
  if (name == "%envreg1") {
    return special<uint32_t>([](const Warp& w, unsigned) { return w.block->grid->workspace >> 32; });
  }
  if (name == "%envreg2") return special<uint32_t>([](const Warp& w, unsigned) { return w.block->grid->workspace; });
  return nullptr;
}

// mov.b64 %rd1, {%r1, %r2}: the first part is the lowest.
template <typename Whole, typename Part>
Execute packing() {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    set_lanes<Whole>(warp, i.to, lanes, [&](unsigned lane) {
      Whole whole = 0;
      for (unsigned n = 0; n < i.count; ++n) {
        whole |= static_cast<Whole>(Whole{unpack<Part>(warp.lanes<Part>(i.elements[n])[lane])} << n * 8 * sizeof(Part));
      }
      return whole;
    });
  };
}
template <typename Whole, typename Part>
Execute unpacking() {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    for_lanes(lanes, [&](unsigned lane) {
      const Whole whole = unpack<Whole>(warp.lanes<Whole>(i.from[0])[lane]);
      for (unsigned n = 0; n < i.count; ++n) {
        warp.lanes<Part>(i.elements[n])[lane] = pack<Part>(static_cast<Part>(whole >> n * 8 * sizeof(Part)));
      }
    });
  };
}

Execute decode_parts(Decoder& d, const Operand& group, bool pack_them) {
  Instruction& i = d.instruction();
  const unsigned bits = bits_of(d.type());
  if (group.parts.empty() || group.parts.size() > i.elements.size()) return nullptr;
  i.count = static_cast<uint8_t>(group.parts.size());
  const unsigned part_bits = bits / i.count;
  for (size_t n = 0; n < group.parts.size(); ++n) {
    i.elements[n] = pack_them ? d.read(group.parts[n], part_bits) : d.write(group.parts[n], part_bits);
  }
  if (pack_them) {
    i.to = d.write(d.operand(0), bits);
  } else {
    i.from[0] = d.read(d.operand(1), bits);
  }
  if (bits == 64 && part_bits == 32) {
    return pack_them ? packing<uint64_t, uint32_t>() : unpacking<uint64_t, uint32_t>();
  }
  if (bits == 64 && part_bits == 16) {
    return pack_them ? packing<uint64_t, uint16_t>() : unpacking<uint64_t, uint16_t>();
  }
  if (bits == 32 && part_bits == 16) {
    return pack_them ? packing<uint32_t, uint16_t>() : unpacking<uint32_t, uint16_t>();
  }
  if (bits == 32 && part_bits == 8) {
    return pack_them ? packing<uint32_t, uint8_t>() : unpacking<uint32_t, uint8_t>();
  }
  return nullptr;
}

// Between the address in a space and the one in the generic space: memory.h says how far apart they are.
Execute decode_cvta(Decoder& d) {
  const uint64_t window = d.has("shared")  ? kSharedWindow
                          : d.has("local") ? kLocalWindow
                          : d.has("param") ? kParamWindow
                                           : 0;
  if (window == 0 && !d.has("global") && !d.has("const")) return nullptr;
  d.take(64, {64});
  d.instruction().offset = d.has("to") ? ~window + 1 : window;
  return per_lane_with_modes<uint64_t, uint64_t>([](const Instruction& i, uint64_t a) { return a + i.offset; });
}

}  // namespace

Execute decode_moves(Decoder& d) {
  if (d.is("cvta")) return decode_cvta(d);
  if (!d.is("mov") || d.operands() != 2) return nullptr;
  if (d.operand(1).kind == Operand::Kind::special) return decode_special(d);
  if (d.operand(1).kind == Operand::Kind::group) return decode_parts(d, d.operand(1), true);
  if (d.operand(0).kind == Operand::Kind::group) return decode_parts(d, d.operand(0), false);
  const unsigned bits = bits_of(d.type());
  d.take(bits, {bits});
  if (bits == 64) return per_lane<uint64_t, uint64_t>([](uint64_t a) { return a; });
  return per_lane<uint32_t, uint32_t>([](uint32_t a) { return a; });
}

}  // namespace dgc::ptx
