#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dgc {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// Each number is a pure function of (seed, stream, counter): the n-th number of a stream does not depend on the caller,
// on the order of the calls or on the number of workers. So there is no state to save: a resumed run needs the counter
// only.
class Philox {
 public:
  Philox(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  std::array<uint32_t, 4> block(uint64_t counter) const;

  uint32_t bits(uint64_t index) const { return block(index / 4)[index % 4]; }
  float uniform(uint64_t index) const;               // [0, 1), 24 bits
  float normal(uint64_t index) const;                // mean 0, deviation 1; Box-Muller on block(index)
  uint32_t below(uint64_t index, uint32_t n) const;  // [0, n); the bias is below n / 2^32

 private:
  uint64_t seed_;
  uint64_t stream_;
};

// Where [0, 1) is mapped to [low, high), rounded as double is.
inline double between(double low, double high, float uniform) {
  return low + (high - low) * static_cast<double>(uniform);
}

// Makes a stream's number from its purpose and its user: rng_stream("dropout", "fc6"), rng_stream("shuffle", epoch).
uint64_t rng_stream(std::string_view purpose, std::string_view name);
uint64_t rng_stream(std::string_view purpose, uint64_t number);

// Returns 0 ... n-1 in an order that depends on (seed, stream) alone (Fisher-Yates).
std::vector<int32_t> permutation(int64_t n, uint64_t seed, uint64_t stream);

}  // namespace dgc
