#include "tests/ptx/interpreter/memory.h"

#include <fmt/format.h>

namespace dgc::ptx {
namespace {

constexpr uint64_t kFirstAddress = 65536;  // a null pointer with an offset lies below

uint64_t window_of(Space space) {
  if (space == Space::shared) return kSharedWindow;
  if (space == Space::local) return kLocalWindow;
  return space == Space::param ? kParamWindow : 0;
}

Space space_of(uint64_t generic_address) {
  for (const Space space : {Space::param, Space::local, Space::shared}) {
    if (generic_address >= window_of(space)) return space;
  }
  return Space::global;
}

}  // namespace

Location locate(Warp& warp, const Instruction& i, unsigned lane, size_t bytes) {
  uint64_t address = i.offset;
  if (i.base != kNoSlot)
    address += i.wide_base ? warp.lanes<uint64_t>(i.base)[lane] : warp.lanes<uint32_t>(i.base)[lane];
  if (i.base_high != kNoSlot) address += uint64_t{warp.lanes<uint32_t>(i.base_high)[lane]} << 32;
  Space space = i.space == Space::constant ? Space::global : i.space;
  if (space == Space::generic) {
    space = space_of(address);
    address -= window_of(space);
  } else if (space == Space::shared && !i.wide_base) {
    address = static_cast<uint32_t>(address);
  }
  if (address % bytes != 0)
    fail(warp, i, lane, fmt::format("address {:#x} is not aligned to {} bytes", address, bytes));
  std::byte* memory = nullptr;
  uint64_t size = 0;
  switch (space) {
    case Space::shared:
      memory = warp.block->shared.data();
      size = warp.block->shared.size();
      break;
    case Space::local:
      size = warp.block->grid->kernel->program.local_bytes;
      memory = warp.local.data() + lane * size;
      break;
    case Space::param:
      memory = const_cast<std::byte*>(warp.block->grid->args);  // no instruction writes there
      size = warp.block->grid->kernel->program.param_bytes;
      break;
    default:
      if (address < kFirstAddress || address >= kSharedWindow) {
        fail(warp, i, lane, fmt::format("{:#x} is no address of global memory", address));
      }
      return {Space::global, address, reinterpret_cast<std::byte*>(address)};
  }
  if (address > size || size - address < bytes) {
    fail(warp, i, lane, fmt::format("address {} lies outside of a space of {} bytes", address, size));
  }
  return {space, address, memory + address};
}

}  // namespace dgc::ptx
