#include "models/executors.h"

#include <catch.hpp>

#include "tests/models/small_net.h"

using namespace dgc;

TEST_CASE("a batch goes to the smallest executor that has room for it", "[models]") {
  const auto backend = make_cpu_backend(1);
  const Network network = residual_trunk({6, 6, 3});
  Executors executors(network, *backend, {5, 0, 2, 5}, Executor::Mode::evaluation, DType::f32);
  CHECK_FALSE(executors.are_one());
  CHECK(executors.most_rows() == 5);
  CHECK(executors.for_rows(1).batch() == 2);
  CHECK(executors.for_rows(2).batch() == 2);
  CHECK(executors.for_rows(3).batch() == 5);
  CHECK(executors.for_rows(5).batch() == 5);
  CHECK_THROWS_AS(executors.for_rows(6), InternalError);
  CHECK(executors.activation_bytes() == Executor(network, *backend, 5, Executor::Mode::evaluation).activation_bytes());
  CHECK(Executors(network, *backend, {3}, Executor::Mode::evaluation, DType::f32).are_one());
}

TEST_CASE("lengths to pad to end at the longest, and add a tenth at most but to what is short", "[models]") {
  for (const int64_t longest : {1, 16, 17, 100, 3598}) {
    const std::vector<int64_t> lengths = padded_lengths(longest);
    CHECK(lengths.front() == longest);
    CHECK(lengths.back() <= 16);
    CHECK(lengths.back() >= std::min<int64_t>(longest, 14));
    for (size_t i = 1; i < lengths.size(); ++i) {
      CHECK(lengths[i] < lengths[i - 1]);
      CHECK(10 * (lengths[i - 1] - lengths[i] - 1) <= lengths[i] + 10);  // of one frame more than lengths[i]
    }
  }
  CHECK(padded_lengths(3598).size() < 60);
}
