#include "tasks/make.h"

#include <fmt/format.h>

#include <catch.hpp>

#include "tests/support/tiny.h"

namespace dgc::test {

TEST_CASE("the step of what workers have moved by is that of exchange.outer") {
  const std::vector<std::string> outer = {"exchange.every_steps=4", "exchange.outer.momentum=0.5",
                                          "exchange.outer.nesterov=true"};
  const SgdOptions sgd = make_dgc_options(tiny_config(outer)).sgd;
  CHECK((sgd.momentum == 0.5 && sgd.nesterov));
  CHECK_FALSE(make_dgc_options(tiny_config({"exchange.every_steps=4"})).sgd.nesterov);
}

TEST_CASE("groups of workers consist of whole ranks, or ranks of whole groups") {
  const auto check = [](int64_t size, int64_t local) {
    check_groups(tiny_config({fmt::format("exchange.workers_per_group={}", size),
                              fmt::format("workers_per_rank={}", local), kDgc}),
                 24);
  };
  for (const auto& [size, local] : {std::pair{4, 2}, {2, 4}, {3, 3}, {1, 4}}) CHECK_NOTHROW(check(size, local));
  CHECK_THROWS_WITH(check(4, 6), Catch::Contains("groups of 4 and ranks of 6 workers overlap"));
  CHECK_THROWS_WITH(check(5, 1), Catch::Contains("24 workers cannot be divided into groups of 5"));
}

}  // namespace dgc::test
