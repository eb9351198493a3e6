#pragma once

#include <string_view>

#include "tests/ptx/interpreter/kernel.h"

namespace dgc::ptx {

// "up", "down", "bfly" or "idx": `to` becomes from[0] of the lane that from[1] and the limits in from[2] name, and
// to_predicate, where there is one, whether that lies inside of them. Null for another direction.
Execute shuffle_of(std::string_view direction);

}  // namespace dgc::ptx
