#include "dist/wire_sizes.h"

#include <catch.hpp>

using namespace dgc;

TEST_CASE("lengths of index streams, by hand", "[wire]") {
  CHECK(paper48_bytes(1000) == 6000);
  CHECK(run16_words(1000000, 1000) == 1000 + 15);  // 999,000 zeros hold 15 runs of 65,535
  CHECK(run16_words(65535, 1) == 1);               // at most 65,534 zeros in front
  CHECK(run16_words(65536, 1) == 2);
  CHECK(run16_words(7, 7) == 7);
  CHECK(rice_high_bits(1000000, 1000, 9) == 1000 + 1951);
  CHECK(rice_high_bits(7, 7, 0) == 7);
}

TEST_CASE("the best Rice code at 0.1 % takes 11.95 bits per entry", "[wire]") {
  CHECK(rice_low_bits(1000000, 1000) == 9);
  CHECK(1000 * 9 + rice_high_bits(1000000, 1000, 9) == 11951);
  CHECK(1000 * 10 + rice_high_bits(1000000, 1000, 10) == 11975);  // a bit more or less is longer
  CHECK(1000 * 8 + rice_high_bits(1000000, 1000, 8) == 12902);
  CHECK(rice_low_bits(100, 100) == 0);  // all are sent: one bit each
  CHECK(rice_low_bits(1, 1) == 0);
  CHECK(rice_low_bits((int64_t{1} << 32) - 1, 1) == 31);
}
