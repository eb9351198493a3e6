#pragma once

#include <cstdint>

namespace dgc {

// y += x over n elements, for one thread.
void add_chunk(const float* x, int64_t n, float* y);

}  // namespace dgc
