#include "data/held_back.h"

#include <catch.hpp>
#include <numeric>

#include "tensor/errors.h"

namespace dgc {

TEST_CASE("what is held back is drawn by the seed, and the rest is trained on") {
  const HeldBack parts = hold_back(101, 0.2, 7);
  CHECK(parts.held.size() == 20);
  CHECK(std::ranges::is_sorted(parts.held));
  CHECK(std::ranges::is_sorted(parts.trained));
  std::vector<int32_t> all = parts.trained, every(101);
  all.insert(all.end(), parts.held.begin(), parts.held.end());
  std::ranges::sort(all);
  std::iota(every.begin(), every.end(), 0);
  CHECK(all == every);

  CHECK(hold_back(101, 0.2, 7).held == parts.held);
  CHECK(hold_back(101, 0.2, 8).held != parts.held);
  CHECK(parts.held.front() < 50);  // the samples of a class lie together in some sets
  CHECK(parts.held.back() > 50);
}

TEST_CASE("a share that holds back nothing or everything is rounded up or refused") {
  CHECK(hold_back(10, 0.01, 1).held.size() == 1);
  CHECK(hold_back(2, 0.5, 1).trained.size() == 1);
  CHECK_THROWS_AS(hold_back(1, 0.1, 1), UserError);
  CHECK_THROWS_WITH(hold_back(10, 0.99, 1), Catch::Contains("data.validation_split: 0.99 holds back 10 of 10"));
}

}  // namespace dgc
