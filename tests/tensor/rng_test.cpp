#include "tensor/rng.h"

#include <algorithm>
#include <catch.hpp>
#include <cmath>
#include <numeric>
#include <set>

using namespace dgc;

// The known answers of Random123 (kat_vectors, "philox4x32 10"): counter words, key words, output. Its counter is our
// (counter, stream) and its key our seed, low words first.
TEST_CASE("Philox gives the published known answers", "[tensor]") {
  using Block = std::array<uint32_t, 4>;
  CHECK(Philox(0, 0).block(0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox(~0ull, ~0ull).block(~0ull) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // The digits of pi: the one vector that tells the words' order.
  CHECK(Philox(0x299f31d0a4093822, 0x0370734413198a2e).block(0x85a308d3243f6a88) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("number i of a stream is word i % 4 of block i / 4", "[tensor]") {
  const Philox random(3, 4);
  for (const uint64_t i : {0ull, 1ull, 3ull, 4ull, 6ull, 1ull << 40})
    CHECK(random.bits(i) == random.block(i / 4)[i % 4]);
  for (const uint64_t i : {0ull, 5ull, 1000ull}) {
    CHECK(random.uniform(i) == static_cast<float>(random.bits(i) / 256) / 16777216.f);
  }
}

TEST_CASE("uniform fills the range from 0 to 1 evenly", "[tensor]") {
  const Philox random(1, rng_stream("test", "uniform"));
  constexpr int n = 100000, bins = 20;
  std::vector<int> count(bins);
  for (int i = 0; i < n; ++i) {
    const float u = random.uniform(static_cast<uint64_t>(i));
    REQUIRE((u >= 0 && u < 1));
    ++count[static_cast<size_t>(u * bins)];
  }
  double chi_squared = 0;
  for (const int c : count) chi_squared += (c - n / bins) * (c - n / bins) / static_cast<double>(n / bins);
  CHECK(chi_squared < 52.4);  // exceeded by chance in 6 of 100,000 seeds (19 degrees of freedom); this one is fixed
}

TEST_CASE("normal numbers have the moments of the normal distribution", "[tensor]") {
  const Philox random(2, rng_stream("test", "normal"));
  constexpr int n = 100000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, neighbours = 0, previous = 0;
  int within_one = 0;
  for (int i = 0; i < n; ++i) {
    const double z = random.normal(static_cast<uint64_t>(i));
    REQUIRE(std::isfinite(z));
    m1 += z, m2 += z * z, m3 += z * z * z, m4 += z * z * z * z;
    neighbours += z * previous;
    previous = z;
    within_one += std::fabs(z) < 1;
  }
  // Five standard errors each: sqrt(1, 2, 15, 96, 1) / sqrt(n).
  const double error = 5 / std::sqrt(n);
  CHECK(m1 / n == Approx(0).margin(error));
  CHECK(m2 / n == Approx(1).margin(error * std::sqrt(2)));
  CHECK(m3 / n == Approx(0).margin(error * std::sqrt(15)));
  CHECK(m4 / n == Approx(3).margin(error * std::sqrt(96)));
  CHECK(neighbours / n == Approx(0).margin(error));
  CHECK(within_one / static_cast<double>(n) == Approx(std::erf(std::sqrt(0.5))).margin(error * 0.47));
}

TEST_CASE("below(n) reaches every number under n and no other", "[tensor]") {
  const Philox random(3, rng_stream("test", "below"));
  const auto n = GENERATE(1u, 2u, 7u, 100u);
  std::vector<int> count(n);
  for (uint64_t i = 0; i < 20000; ++i) {
    const uint32_t drawn = random.below(i, n);
    REQUIRE(drawn < n);
    ++count[drawn];
  }
  const double expected = 20000.0 / n, error = std::sqrt(expected);
  for (const int c : count) CHECK(c == Approx(expected).margin(5 * error));

  uint32_t largest = 0;
  for (uint64_t i = 0; i < 1000; ++i) largest = std::max(largest, random.below(i, 4000000000u));
  CHECK(largest > 3900000000u);  // no overflow near 2^32
}

TEST_CASE("streams differ by purpose, name and number", "[tensor]") {
  const std::set<uint64_t> streams = {rng_stream("init", "a"),  rng_stream("init", "b"),  rng_stream("drop", "a"),
                                      rng_stream("inita", ""),  rng_stream("i", "nita"),  rng_stream("init/a", ""),
                                      rng_stream("shuffle", 0), rng_stream("shuffle", 1), rng_stream("shuffle", 10),
                                      rng_stream("crop", 1),    rng_stream("crop", ~0ull)};
  CHECK(streams.size() == 11);
  CHECK(rng_stream("shuffle", 12) == rng_stream("shuffle", "12"));
  CHECK(Philox(1, 2).block(0) != Philox(2, 1).block(0));
}

TEST_CASE("a permutation holds every number once, in an order set by seed and stream", "[tensor]") {
  const auto n = GENERATE(0, 1, 2, 15, 16, 17, 1000);
  auto order = permutation(n, 5, 6);
  CHECK(order == permutation(n, 5, 6));
  if (n == 1000) {
    CHECK(order != permutation(n, 5, 7));
    CHECK(order != permutation(n, 6, 6));
    int unmoved = 0;
    for (int i = 0; i < n; ++i) unmoved += order[static_cast<size_t>(i)] == i;
    CHECK(unmoved < 10);  // one is expected
  }
  std::vector<int32_t> identity(static_cast<size_t>(n));
  std::iota(identity.begin(), identity.end(), 0);
  std::ranges::sort(order);
  CHECK(order == identity);
}

TEST_CASE("all orders of three are equally likely", "[tensor]") {
  std::vector<int> count(27);
  for (uint64_t stream = 0; stream < 6000; ++stream) {
    const auto p = permutation(3, 1, stream);
    ++count[static_cast<size_t>(9 * p[0] + 3 * p[1] + p[2])];
  }
  int seen = 0;
  for (const int c : count) {
    if (c == 0) continue;
    ++seen;
    CHECK(c == Approx(1000).margin(5 * std::sqrt(1000 * 5 / 6.0)));
  }
  CHECK(seen == 6);
}
