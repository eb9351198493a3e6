#include <algorithm>
#include <catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/model.h"
#include "tests/emulation/emulate.h"

using namespace dgc;
using Catch::Contains;
using emulation::Launch;

namespace {

struct SumShared {
  int partial[256];
};

// A block adds its part of x, halving the number of adding threads, then the first thread adds to the total.
// kBarriers and kOffByOne are there to be wrong: the tests below must notice.
template <bool kBarriers, int kOffByOne>
void block_sum(const std::vector<int>& x, int* total, SumShared& s) {
  const unsigned n = static_cast<unsigned>(x.size());
  int mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n - kOffByOne; i += gridDim.x * blockDim.x) mine += x[i];
  s.partial[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) s.partial[threadIdx.x] += s.partial[threadIdx.x + half];
    if constexpr (kBarriers) __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, s.partial[0]);
}

template <bool kBarriers, int kOffByOne>
int wrong_results(int seeds) {
  std::vector<int> x(1000);
  std::iota(x.begin(), x.end(), 1);
  int wrong = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    int total = 0;
    emulate({.grid = 3, .block = 64, .seed = static_cast<uint64_t>(seed)},
            [&](SumShared& s) { block_sum<kBarriers, kOffByOne>(x, &total, s); });
    wrong += total != 500500;
  }
  return wrong;
}

struct Nothing {};

void wait_in_two_places() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

}  // namespace

TEST_CASE("emulated: a sum through shared memory is right in any order of threads and blocks", "[emulation]") {
  CHECK(wrong_results<true, 0>(50) == 0);
}

TEST_CASE("emulated: a planted missing barrier gives a wrong result", "[emulation]") {
  CHECK(wrong_results<false, 0>(50) > 40);
}

TEST_CASE("emulated: a planted off-by-one gives a wrong result", "[emulation]") {
  CHECK(wrong_results<true, 1>(5) == 5);
}

TEST_CASE("emulated: the same seed gives the same order, another one another", "[emulation]") {
  const auto order = [](uint64_t seed) {
    std::vector<unsigned> arrivals;
    emulate({.grid = 4, .block = 32, .seed = seed}, [&] { arrivals.push_back(blockIdx.x * blockDim.x + threadIdx.x); });
    return arrivals;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
  auto sorted = order(3);
  std::sort(sorted.begin(), sorted.end());
  std::vector<unsigned> all(128);
  std::iota(all.begin(), all.end(), 0u);
  CHECK(sorted == all);
}

TEST_CASE("emulated: a scan by shuffles", "[emulation]") {
  const unsigned block = GENERATE(32u, 96u);
  std::vector<int> sums(2 * block), first(2 * block);
  emulate({.grid = 2, .block = block, .seed = block}, [&] {
    const int lane = static_cast<int>(threadIdx.x % 32);
    int sum = lane;
    for (int d = 1; d < 32; d *= 2) {
      const int below = __shfl_up_sync(0xffffffffu, sum, static_cast<unsigned>(d));
      if (lane >= d) sum += below;
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    first[blockIdx.x * blockDim.x + threadIdx.x] = __shfl_sync(0xffffffffu, sum, 31);
  });
  for (size_t i = 0; i < sums.size(); ++i) {
    const int lane = static_cast<int>(i % 32);
    CHECK(sums[i] == lane * (lane + 1) / 2);
    CHECK(first[i] == 31 * 32 / 2);
  }
}

TEST_CASE("emulated: collectives honour their mask", "[emulation]") {
  unsigned low = 0, high = 0;
  std::vector<int> any(32), all(32), other(32);
  emulate({.block = 32}, [&] {
    const unsigned lane = threadIdx.x;
    const unsigned mask = lane < 8 ? 0xffu : 0xffffff00u;
    const unsigned votes = __ballot_sync(mask, lane % 2 == 0);
    (lane < 8 ? low : high) = votes;
    any[lane] = __any_sync(mask, lane == 3);
    all[lane] = __all_sync(mask, lane < 8);
    other[lane] = __shfl_xor_sync(mask, static_cast<int>(lane), 1);
    __syncwarp(mask);
  });
  CHECK(low == 0x55u);
  CHECK(high == 0x55555500u);
  for (int lane = 0; lane < 32; ++lane) {
    const auto i = static_cast<size_t>(lane);
    CHECK((any[i] == (lane < 8) && all[i] == (lane < 8) && other[i] == (lane ^ 1)));
  }
}

TEST_CASE("emulated: a grid-wide barrier has every block before it", "[emulation]") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    int arrived = 0;
    std::vector<int> seen(9 * 32);
    emulate({.grid = 9, .block = 32, .seed = seed}, [&] {
      atomicAdd(&arrived, 1);
      cuda::grid_sync();
      seen[blockIdx.x * blockDim.x + threadIdx.x] = arrived;
    });
    REQUIRE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 9 * 32; }));
  }
}

TEST_CASE("emulated: shared memory starts as NaN and belongs to one block", "[emulation]") {
  struct Shared {
    float value;
    unsigned block;
  };
  bool poisoned = true, own = true;
  emulate({.grid = 3, .block = 32}, [&](Shared& s) {
    if (threadIdx.x == 0) {
      poisoned = poisoned && std::isnan(s.value);
      s.block = blockIdx.x;
    }
    __syncthreads();
    own = own && s.block == blockIdx.x;
  });
  CHECK(poisoned);
  CHECK(own);
}

TEST_CASE("emulated: barriers that not all threads reach are reported", "[emulation]") {
  const Launch launch{.grid = 2, .block = 64, .seed = 5};
  CHECK_THROWS_WITH(
      emulate(launch,
              [] {
                if (threadIdx.x < 63) __syncthreads();
              }),
      Contains("63 of block 0 at __syncthreads (emulation_test.cpp") && Contains("1 of block 0 at returned"));
  CHECK_THROWS_WITH(emulate(launch, wait_in_two_places), Contains("__syncthreads"));
  CHECK_THROWS_WITH(emulate(launch,
                            [] {
                              if (blockIdx.x == 1) cuda::grid_sync();
                            }),
                    Contains("64 of block 1 at grid_sync"));
  CHECK_THROWS_WITH(emulate(launch,
                            [] {
                              if (threadIdx.x != 7) __ballot_sync(0xffffffffu, 1);
                            }),
                    Contains("__ballot_sync"));
  CHECK_THROWS_WITH(emulate(launch, [] { __syncwarp(0xffffu); }), Contains("not in its own mask"));
  CHECK_THROWS_WITH(emulate({.block = 16}, [] { __syncwarp(); }), Contains("does not have"));
  CHECK_THROWS_WITH(emulate(launch,
                            [] {
                              if (threadIdx.x % 32 < 8) __shfl_sync(0xffu, 1, 9);
                            }),
                    Contains("outside its mask"));
  // And the next launch is none the worse for it.
  int count = 0;
  emulate(launch, [&](Nothing&) { __syncthreads(), ++count; });
  CHECK(count == 128);
}

TEST_CASE("emulated: what a thread throws comes out", "[emulation]") {
  CHECK_THROWS_AS(emulate({.grid = 2, .block = 32}, [] { throw std::out_of_range("thread"); }), std::out_of_range);
}

TEST_CASE("emulated: 16-bit types round to nearest even", "[emulation]") {
  CHECK(cuda::from_float<cuda::bf16>(1.f).bits == 0x3f80);
  CHECK(cuda::from_float<cuda::bf16>(1.f + 0x1p-8f).bits == 0x3f80);
  CHECK(cuda::from_float<cuda::bf16>(1.f + 3 * 0x1p-8f).bits == 0x3f82);
  CHECK(cuda::from_float<cuda::bf16>(3.4e38f).bits == 0x7f80);
  CHECK(std::isnan(cuda::to_float(cuda::from_float<cuda::bf16>(std::nanf("")))));
  CHECK(cuda::to_float(cuda::from_float<cuda::f16>(1.f + 0x1p-11f)) == 1.f);
}
