#include "tools/projection.h"

#include <catch.hpp>

#include "tests/support/tiny.h"

// By hand numbers. tiny_config: 604 parameters, 584 in two tensors and 20 in small ones; at 98 % a message of 128
// bytes.
namespace dgc {

using test::kDgc;
using test::kSgd;
using test::tiny_config;

TEST_CASE("what reaches a worker") {
  const Traffic gathered = gather_traffic(4, 1000), summed = sum_traffic(4, 8000);
  CHECK((gathered.bytes == 3000 && gathered.messages == 3));
  CHECK((summed.bytes == 12000 && summed.messages == 6));  // 3/4 of it in parts, and 3/4 of the sum
  CHECK(Traffic{12500, 3}.seconds({.bits_per_second = 1e6, .latency_seconds = 1e-3}) == Approx(0.103));
  CHECK((gather_traffic(1, 1000).bytes == 0 && sum_traffic(1, 1000).messages == 0));
}

TEST_CASE("the traffic of a step, collective by collective") {
  const StepTraffic four = step_traffic(tiny_config(), 4);
  // 3 x 40 bytes of norms and losses in 3 messages come first.
  CHECK((four.dense.bytes == 120 + 2 * 3 * 604 && four.dense.messages == 9));
  CHECK((four.half.bytes == 120 + 3 * 604 && four.half.messages == 9));
  CHECK((four.dgc.bytes == 120 + 3 * 128 + 2 * 3 * 20 && four.dgc.messages == 3 + 3 + 6));
  CHECK((four.travel == Travel::sparse));

  const auto half = [](int64_t workers) {
    return step_traffic(tiny_config({kDgc, "exchange.small_tensors=dense_fp16"}), workers).dgc;
  };
  CHECK((half(4).bytes == 120 + 3 * 128 + 3 * (10 + 20) && half(4).messages == 3 + 3 + 6));
  CHECK((half(2).bytes == 40 + 128 + 40 && half(2).messages == 3));
  // The 20 lie in gaps of 16: 36 elements in a third tensor, of which one hundredth, but at least one, is sent.
  const StepTraffic sparse = step_traffic(tiny_config({kDgc, "exchange.small_tensors=sparse"}), 4);
  CHECK(sparse.dgc.messages == 6);

  // Two groups: one message comes from the other, and one half of 20 floats twice.
  const StepTraffic groups = step_traffic(tiny_config({kDgc, "exchange.workers_per_group=2"}), 4);
  CHECK((groups.dgc.bytes == 120 + 128 + 80 && groups.dgc.messages == 3 + 1 + 2));
  // Rows and owners' messages of 64 bytes (plan_test.cpp).
  const StepTraffic split = step_traffic(tiny_config({kDgc, "exchange.algorithm=split_reduce"}), 4);
  CHECK((split.dgc.bytes == 120 + 3 * (64 + 64) + 2 * 3 * 20 && split.dgc.messages == 3 + 6 + 6 &&
         split.travel == Travel::split_reduce));

  const StepTraffic rarely = step_traffic(tiny_config({kDgc, "exchange.every_steps=8"}), 4);
  CHECK((rarely.dgc.bytes == four.dgc.bytes / 8 && rarely.dgc.messages == 12.0 / 8));
  CHECK(rarely.dense.bytes == four.dense.bytes);

  // What the config itself does: of sgd the dense sum, in 16 bits and once in 4 steps where it says so.
  CHECK((four.own.bytes == four.dgc.bytes && step_traffic(tiny_config({kSgd}), 4).own.bytes == four.dense.bytes));
  const StepTraffic sgd = step_traffic(tiny_config({kSgd, "exchange.dense_values=fp16", "exchange.every_steps=4"}), 4);
  CHECK((sgd.own.bytes == four.half.bytes / 4 && sgd.own.messages == 9.0 / 4));

  // 64 messages of 128 bytes are more than 8 x 584.
  const StepTraffic many = step_traffic(tiny_config(), 64);
  CHECK((many.travel == Travel::dense));
  CHECK(many.dgc.bytes == Approx(63 * 40 + 2 * 63.0 / 64 * 4 * 604));
  CHECK(many.dgc.messages == 63 * 5);
}

TEST_CASE("projected steps and speed-ups") {
  const auto rows = project(tiny_config(), {48, 4, 1}, {.bits_per_second = 1e6, .latency_seconds = 0}, 0.01);
  std::vector<int64_t> counts;
  for (const ProjectionRow& row : rows) counts.push_back(row.workers);
  CHECK(counts == std::vector<int64_t>{1, 2, 4, 8, 16, 32, 48, 64, 128, 256, 512, 1024});
  CHECK((rows[0].dense.seconds == 0.01 && rows[0].dgc.speed_up == 1));
  const ProjectionRow& four = rows[2];
  CHECK(four.dense.seconds == Approx(0.01 + 8e-6 * 3744));
  CHECK(four.dense.speed_up == Approx(0.04 / 0.039952));
  CHECK(four.half.seconds == Approx(0.01 + 8e-6 * 1932));
  CHECK(four.dgc.seconds == Approx(0.01 + 8e-6 * 624));
  CHECK(four.dgc.speed_up == Approx(0.04 / 0.014992));
  const auto grouped = project(tiny_config({kDgc, "exchange.workers_per_group=4"}), {12}, {1e6, 0}, 0.01);
  CHECK((grouped[0].workers == 4 && grouped[1].workers == 8 && grouped[2].workers == 12));
  const auto late = project(tiny_config(), {}, {.bits_per_second = 1e6, .latency_seconds = 0.002}, 0.01);
  CHECK(late[1].dgc.seconds == Approx(four.dgc.seconds + 12 * 0.002));
}

}  // namespace dgc
