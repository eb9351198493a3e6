#include "kernels/dgc_guess.h"

#include <catch.hpp>
#include <cmath>
#include <limits>

using namespace dgc;

namespace {

DgcSegment guessed_tensor(int64_t numel, int64_t k) {
  DgcSegment s;
  s.numel = numel, s.k = k;
  return s;
}

}  // namespace

TEST_CASE("the next threshold goes on as the last one moved, a little below", "[dgc]") {
  const DgcSegment s = guessed_tensor(1600, 100);
  CHECK(next_threshold({8, 1, 0.75f, 100, true}, s) == 6);
  CHECK(next_threshold({8, 2, 0.75f, 100, true}, s) == 9);      // from 4 to 8: 4 more would be 12
  CHECK(next_threshold({8, 0.25f, 0.75f, 100, true}, s) == 3);  // at least half of it
  CHECK(next_threshold({8, std::nanf(""), 0.75f, 100, true}, s) == 3);
}

TEST_CASE("where nothing is known, or much is sent, there is no next threshold", "[dgc]") {
  const DgcSegment s = guessed_tensor(1600, 100);
  CHECK(next_threshold({}, s) == 0);
  CHECK(next_threshold({8, 1, 0.75f, 99, true}, s) == 0);
  CHECK(next_threshold({8, 1, 0.75f, 100, true}, guessed_tensor(1599, 100)) == 0);
  for (const float threshold : {0.f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    CHECK(next_threshold({threshold, 1, 0.75f, 100, true}, s) == 0);
  }
}

TEST_CASE("lists are a few times as long as what is sent, and at most a share of the tensor", "[dgc]") {
  CHECK(candidate_limit(guessed_tensor(1 << 20, 1000), 4) == 16256);
  CHECK(candidate_limit(guessed_tensor(32000, 1000), 4) == 8256);
  CHECK(candidate_limit(guessed_tensor(32000, 1000), 8) == 4256);
  CHECK(list_length(1) == 5);
  CHECK(list_length(100) == 190);
  CHECK(list_length(1001) == 1501 + 126);
}

TEST_CASE("a guess learns from what was selected", "[dgc]") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  CHECK(tail_of(6, 8, false) == 0.75f);
  CHECK(tail_of(6, 8, true) == 0.5f);  // twice as far
  CHECK(tail_of(8, 8, true) == 0.99f);
  for (const float lost : {tail_of(0.5f, 8, false), tail_of(1, infinity, false), tail_of(nan, nan, false)}) {
    CHECK(lost == DgcGuess{}.tail);
  }

  const DgcSegment s = guessed_tensor(1600, 100);
  DgcGuess guess;
  remember(guess, s, 4, 0.5f, false);
  CHECK((guess.threshold == 4 && guess.growth == 1 && guess.tail == 0.5f && guess.k == 100 && !guess.hit));
  remember(guess, s, 6, 0.75f, true);
  CHECK((guess.threshold == 6 && guess.growth == 1.5f && guess.tail == 0.75f && guess.hit));
  remember(guess, s, 60, 0.75f, true);
  CHECK(guess.growth == 4);
  remember(guess, s, 6, 0.75f, true);
  CHECK(guess.growth == 0.25f);
  remember(guess, guessed_tensor(1600, 50), 12, 0.75f, true);  // another k: the threshold before says nothing
  CHECK((guess.growth == 1 && guess.k == 50));
}
