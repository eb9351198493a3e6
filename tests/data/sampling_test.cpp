#include "data/sampling.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/data/fixtures.h"

namespace dgc {
namespace {

std::vector<int32_t> global_batch(const Sampler& sampler, int64_t step) {
  std::vector<int32_t> all, part;
  for (int64_t w = 0; w < sampler.sampling().workers; ++w) {
    sampler.indices(step, w, part);
    CHECK(std::ssize(part) == sampler.sampling().batch_per_worker);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<int32_t> epoch_order(const Sampler& sampler, int64_t epoch) {
  std::vector<int32_t> all;
  for (int64_t s = 0; s < sampler.steps_per_epoch(); ++s) {
    const auto batch = global_batch(sampler, epoch * sampler.steps_per_epoch() + s);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST_CASE("sampler: a training's batches name step, epoch and worker, and are augmented by the run's seed") {
  const WorkerBatches batches{.sampling = {.samples = 24, .workers = 3, .batch_per_worker = 2, .seed = 9},
                              .first_worker = 1,
                              .local_workers = 2,
                              .start_step = 5};
  const auto sampler = std::make_shared<const Sampler>(batches.sampling);
  const BatchPlan plan = training_plans(batches, sampler).plan(3);  // the second worker's second step
  CHECK((plan.step == 6 && plan.epoch == 1 && plan.worker == 2 && plan.augment_seed == 9));
  std::vector<int32_t> samples;
  sampler->indices(6, 2, samples);
  CHECK(plan.samples == samples);
  CHECK_FALSE(evaluation_plans(24, {.rows = 5}).plan(1).augment_seed);
}

TEST_CASE("sampler: the shares of an evaluation's batches are all of them, each once") {
  const BatchPlans whole = evaluation_plans(24, {.rows = 5});
  REQUIRE(whole.count == 5);
  CHECK(whole.plan(4).samples == std::vector<int32_t>{20, 21, 22, 23});
  for (int64_t shares = 1; shares <= 7; ++shares) {
    CAPTURE(shares);
    int64_t count = 0;
    for (int64_t share = 0; share < shares; ++share) {
      const BatchPlans plans = evaluation_plans(24, {.rows = 5, .first = share, .every = shares});
      count += plans.count;
      for (int64_t i = 0; i < plans.count; ++i) {
        const int64_t number = share + i * shares;
        REQUIRE(number < whole.count);
        CHECK(plans.plan(i).step == number);
        CHECK(plans.plan(i).samples == whole.plan(number).samples);
      }
    }
    CHECK(count == whole.count);
  }
}

TEST_CASE("sampler: each sample once per epoch, in another order each time") {
  const Sampler sampler({.samples = 24, .workers = 3, .batch_per_worker = 2, .seed = 1});
  REQUIRE(sampler.steps_per_epoch() == 4);
  std::set<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<int32_t> order = epoch_order(sampler, epoch);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    std::vector<int32_t> all(24);
    std::iota(all.begin(), all.end(), 0);
    CHECK(order == all);
  }
  CHECK(orders.size() == 5);
}

TEST_CASE("sampler: an incomplete last batch is dropped, other samples each epoch") {
  const Sampler sampler({.samples = 25, .workers = 2, .batch_per_worker = 4, .seed = 1});
  CHECK(sampler.steps_per_epoch() == 3);
  std::set<int32_t> ever;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<int32_t> order = epoch_order(sampler, epoch);
    CHECK(std::set<int32_t>(order.begin(), order.end()).size() == 24);
    ever.insert(order.begin(), order.end());
  }
  CHECK(ever.size() == 25);
}

TEST_CASE("sampler: the global batch does not depend on how it is divided") {
  const Sampler one({.samples = 100, .workers = 1, .batch_per_worker = 8, .seed = 3});
  const Sampler four({.samples = 100, .workers = 4, .batch_per_worker = 2, .seed = 3});
  for (const int64_t step : {0, 1, 11, 12, 13, 500}) CHECK(global_batch(one, step) == global_batch(four, step));
}

TEST_CASE("sampler: looking back and forth between epochs gives the same, and the seed counts") {
  const Sampler a({.samples = 16, .workers = 2, .batch_per_worker = 2, .seed = 1});
  const Sampler b({.samples = 16, .workers = 2, .batch_per_worker = 2, .seed = 2});
  const auto first = epoch_order(a, 0);
  epoch_order(a, 7);
  epoch_order(a, 8);
  CHECK(epoch_order(a, 0) == first);
  CHECK(epoch_order(b, 0) != first);
}

TEST_CASE("sampler: too few samples for one step") {
  CHECK_THAT(user_error([] { Sampler({.samples = 127, .workers = 4, .batch_per_worker = 32, .seed = 1}); }),
             Catch::Contains("4 batches with 32 examples each needs 128 examples") && Catch::Contains("only 127"));
  CHECK(Sampler({.samples = 128, .workers = 4, .batch_per_worker = 32, .seed = 1}).steps_per_epoch() == 1);
}

}  // namespace
}  // namespace dgc
