#include "data/speech/order.h"

#include <algorithm>
#include <catch.hpp>
#include <numeric>
#include <set>

namespace dgc {
namespace {

using Order = std::vector<int32_t>;

constexpr Sampling kSampling{103, 2, 4, 7};  // 12 steps of 8, 7 left over

Order batch_of(const Order& order, size_t step) {
  Order batch(order.begin() + static_cast<int64_t>(step) * 8, order.begin() + static_cast<int64_t>(step + 1) * 8);
  std::sort(batch.begin(), batch.end());
  return batch;
}

TEST_CASE("buckets: each epoch takes each sample at most once, and depends on seed and epoch alone") {
  const BucketOptions options{3, 0};
  std::set<Order> orders;
  std::vector<int> seen(103);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Order order = bucketed_order(kSampling, options, epoch);
    REQUIRE(order.size() == 96);
    CHECK(std::set<int32_t>(order.begin(), order.end()).size() == 96);
    CHECK(order == bucketed_order(kSampling, options, epoch));
    for (const int32_t i : order) ++seen.at(static_cast<size_t>(i));
    orders.insert(order);
  }
  CHECK(orders.size() == 20);
  CHECK(*std::min_element(seen.begin(), seen.end()) > 0);  // what an epoch drops differs
  Sampling other = kSampling;
  other.seed = 8;
  CHECK(bucketed_order(other, options, 1) != bucketed_order(kSampling, options, 1));
}

TEST_CASE("buckets: batches are neighbours of their bucket") {
  const Order order = bucketed_order(kSampling, {3, 0}, 5);
  // Four buckets of three batches: within each, batches do not overlap; so of any batch, at least two others neither
  // begin before it ends nor end after it begins. With one bucket, no two overlap.
  for (size_t a = 0; a < 12; ++a) {
    int apart = 0;
    for (size_t b = 0; b < 12; ++b) {
      const Order x = batch_of(order, a), y = batch_of(order, b);
      apart += a != b && (x.back() < y.front() || y.back() < x.front());
    }
    CHECK(apart >= 2);
  }
  const Order one = bucketed_order(kSampling, {12, 0}, 5);
  for (size_t a = 0; a < 12; ++a) {
    for (size_t b = 0; b < a; ++b) {
      const Order x = batch_of(one, a), y = batch_of(one, b);
      CHECK((x.back() < y.front() || y.back() < x.front()));
    }
  }
  CHECK_FALSE(std::is_sorted(one.begin(), one.end(), [](int32_t a, int32_t b) { return a / 8 < b / 8; }));
}

TEST_CASE("buckets: the first epochs go from short to long") {
  const Order order = bucketed_order(kSampling, {3, 2}, 1);
  for (size_t step = 1; step < 12; ++step) CHECK(batch_of(order, step - 1).back() < batch_of(order, step).front());
  const Order later = bucketed_order(kSampling, {3, 2}, 2);
  int rising = 0;
  for (size_t step = 1; step < 12; ++step) rising += batch_of(later, step - 1).back() < batch_of(later, step).front();
  CHECK(rising < 11);
}

TEST_CASE("buckets: workers take turns in a batch") {
  Sampling sampling{8, 2, 4, 3};
  CHECK(bucketed_order(sampling, {1, 1}, 0) == Order{0, 2, 4, 6, 1, 3, 5, 7});
  sampling.workers = 4;
  sampling.batch_per_worker = 2;
  CHECK(bucketed_order(sampling, {1, 1}, 0) == Order{0, 4, 1, 5, 2, 6, 3, 7});
}

}  // namespace
}  // namespace dgc
