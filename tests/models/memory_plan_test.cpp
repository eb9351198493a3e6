#include "models/memory_plan.h"

#include <algorithm>
#include <catch.hpp>
#include <random>

using namespace dgc;

namespace {

struct Life {
  size_t bytes;
  int first, last;
};

// Most bytes alive at any one time: no plan can need less.
size_t lower_bound(const std::vector<Life>& lives) {
  size_t most = 0;
  for (const Life& at : lives) {
    size_t alive = 0;
    for (const Life& other : lives) {
      if (other.first <= at.first && at.first <= other.last) alive += (other.bytes + 63) / 64 * 64;
    }
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

TEST_CASE("blocks that live at the same time never overlap", "[models]") {
  const auto seed = GENERATE(range(0u, 60u));
  std::mt19937 random(seed);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  const int count = draw(1, 40), times = draw(1, 30);
  MemoryPlan plan;
  std::vector<Life> lives;
  for (int i = 0; i < count; ++i) {
    const int first = draw(0, times), last = draw(first, times);
    lives.push_back({static_cast<size_t>(draw(0, 3) * draw(0, 300)), first, last});
    REQUIRE(plan.add(lives.back().bytes, first, last) == i);
  }
  for (int i = 0; i < count / 3; ++i) {  // some turn out to live longer; an earlier end changes nothing
    const int block = draw(0, count - 1), last = draw(0, times);
    plan.extend(block, last);
    int& end = lives[static_cast<size_t>(block)].last;
    end = std::max(end, last);
  }
  plan.solve();

  int overlaps = 0, outside = 0, unaligned = 0;
  for (int i = 0; i < count; ++i) {
    const Life& a = lives[static_cast<size_t>(i)];
    outside += plan.offset(i) + a.bytes > plan.bytes();
    unaligned += plan.offset(i) % 64 != 0;
    for (int j = 0; j < i; ++j) {
      const Life& b = lives[static_cast<size_t>(j)];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool share = plan.offset(i) < plan.offset(j) + b.bytes && plan.offset(j) < plan.offset(i) + a.bytes;
      overlaps += together && share && a.bytes > 0 && b.bytes > 0;
    }
  }
  CAPTURE(seed, count, times);
  CHECK(overlaps == 0);
  CHECK(outside == 0);
  CHECK(unaligned == 0);
  CHECK(plan.bytes() >= lower_bound(lives));
  CHECK(plan.bytes() <= 2 * lower_bound(lives));  // greedy, but not careless: these seeds stay below
}

TEST_CASE("memory is reused as soon as its block is dead", "[models]") {
  MemoryPlan plan;
  for (int t = 0; t < 100; ++t) plan.add(1000, t, t + 1);  // each lives together with its neighbours alone
  plan.solve();
  CHECK(plan.bytes() == 2 * 1024);
}

TEST_CASE("a block that is needed in its last moment keeps its memory through it", "[models]") {
  MemoryPlan plan;
  const int a = plan.add(64, 0, 3), b = plan.add(64, 3, 5), c = plan.add(64, 4, 4);
  plan.solve();
  CHECK(plan.offset(a) != plan.offset(b));
  CHECK(plan.offset(b) != plan.offset(c));
  CHECK(plan.bytes() == 128);
}

TEST_CASE("an empty plan and empty blocks need no memory", "[models]") {
  MemoryPlan none, empty;
  none.solve();
  CHECK(none.bytes() == 0);
  empty.add(0, 0, 5);
  empty.add(0, 2, 3);
  empty.solve();
  CHECK(empty.bytes() == 0);
}
