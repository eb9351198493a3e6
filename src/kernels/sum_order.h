#pragma once

#include <cstdint>

namespace dgc {

// The order in which sum_squares adds, on every backend. Element i of a chunk goes to lane i % kSumLanes, each lane
// adds its squares one after another in double (a product of two floats is exact there), and the lanes are folded in
// halves: lane[j] += lane[j + 8], then + 4, + 2, + 1. The chunks' sums are added in the same way over kSumChunkLanes
// lanes: chunk c goes to lane c % kSumChunkLanes, folded from 512 down to 1. Lanes without elements hold 0.
inline constexpr int64_t kSumChunk = 4096;
inline constexpr int kSumLanes = 16;
inline constexpr int kSumChunkLanes = 1024;

}  // namespace dgc
