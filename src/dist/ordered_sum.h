#pragma once

#include <cstddef>
#include <span>

namespace dgc {

// out[i] = ((x0[i] + x1[i]) + x2[i]) + ... for first <= i < last. At least one input.
void ordered_sum(std::span<const float* const> x, float* out, size_t first, size_t last);

}  // namespace dgc
