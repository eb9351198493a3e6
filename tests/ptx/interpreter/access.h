#pragma once

#include <string_view>

#include "tests/ptx/interpreter/kernel.h"

// What loads, stores and atomics do, whatever the instruction is called. Each is null where there is none.
namespace dgc::ptx {

// Between memory, where a value has this type, and `elements`, which have 64 bits or 32.
Execute load_of(Type type, bool wide_registers);
Execute store_of(Type type, bool wide_registers);
// "add", "exch", "min", "max", "cas", "and", "or", "xor", "inc" or "dec", with the operands in from[0] and, for cas,
// the new value in from[1]; `to` becomes what was there.
Execute atomic_of(std::string_view what, Type type);

}  // namespace dgc::ptx
