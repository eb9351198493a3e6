#include "train/ranks.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "tests/train/tiny.h"

namespace dgc {

TEST_CASE("a launcher's processes are the ranks, and talk through NCCL") {
  const Launch launch{.launcher = "torchrun", .rank = 1, .size = 4, .run = {}, .meeting = {}};
  const Config config = with_launch(test::tiny_config(), launch);
  CHECK(config.ranks == 4);
  CHECK(config.exchange.communicator == CommunicatorType::nccl);
  CHECK(with_launch(test::tiny_config(), {}) == test::tiny_config());
  CHECK(with_launch(test::tiny_config({"ranks=4"}), launch).ranks == 4);
  CHECK_THROWS_WITH(with_launch(test::tiny_config({"ranks=2"}), launch),
                    Catch::Contains("ranks: 2 does not fit the 4"));
  CHECK_THROWS_WITH(with_launch(test::tiny_config({"exchange.communicator=\"threads\""}), launch),
                    Catch::Contains("exchange.communicator: 'threads' is for one process"));
}

TEST_CASE("a precision that the device cannot compute in is refused") {
  const Config config = test::tiny_config({"device=\"cpu\"", "precision=\"bf16\""});
  CHECK_THROWS_WITH(make_backend(config), Catch::Contains("precision: bf16 needs a GPU"));
}

TEST_CASE("every rank of a process has a backend and a communicator of its own") {
  std::atomic<int> ranks = 0;
  on_ranks(test::tiny_config({"ranks=3"}), {}, [&](Backend& backend, Communicator& communicator) {
    DGC_CHECK(communicator.size() == 3 && backend.device() != nullptr, "a rank without its own");
    ++ranks;
  });
  CHECK(ranks == 3);
}

}  // namespace dgc
