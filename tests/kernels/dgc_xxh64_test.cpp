#include <xxhash.h>

#include <catch.hpp>
#include <random>
#include <vector>

#include "kernels/cuda/model.h"
#include "kernels/cuda/xxh64.cuh"
#include "tests/emulation/emulate.h"

using namespace dgc;

TEST_CASE("our XXH64 is XXH64", "[dgc]") {
  const uint64_t seed = GENERATE(uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0x9e3779b185ebca87});
  std::mt19937_64 random(seed);
  std::vector<uint64_t> words(1300);
  for (uint64_t& word : words) word = random();
  for (int64_t first = 0; first < 208; first += 8) {  // eight lengths at once, as eight groups of a warp
    std::vector<uint64_t> hashes(8);
    const auto length = [&](int64_t group) { return first < 200 ? first + group : 1024 + 31 * group; };
    emulate({.block = 32, .seed = seed + static_cast<uint64_t>(first)}, [&] {
      const int64_t group = threadIdx.x / 4;
      const uint64_t hash =
          cuda::xxh64_by_four(length(group), seed, [&](int64_t i) { return words[static_cast<size_t>(i)]; });
      if (threadIdx.x % 4 == static_cast<unsigned>(group) % 4) hashes[static_cast<size_t>(group)] = hash;
    });
    std::vector<uint64_t> by_warp(8);
    emulate({.block = 32, .seed = seed + static_cast<uint64_t>(first)}, [&] {
      for (int64_t group = 0; group < 8; ++group) {
        const uint64_t hash =
            cuda::xxh64_by_warp(length(group), seed, [&](int64_t i) { return words[static_cast<size_t>(i)]; });
        if (threadIdx.x == static_cast<unsigned>(group)) by_warp[static_cast<size_t>(group)] = hash;
      }
    });
    for (int64_t group = 0; group < 8; ++group) {
      CAPTURE(length(group), seed);
      const uint64_t expected = XXH64(words.data(), static_cast<size_t>(length(group)) * 8, seed);
      REQUIRE(hashes[static_cast<size_t>(group)] == expected);
      REQUIRE(by_warp[static_cast<size_t>(group)] == expected);
    }
  }
}
