#include "train/ranks/on_ranks.h"

#include <atomic>
#include <catch.hpp>

#include "tensor/errors.h"
#include "tests/support/tiny.h"

namespace dgc {

TEST_CASE("every rank of a process has a backend and a communicator of its own") {
  std::atomic<int> ranks = 0;
  on_ranks(test::tiny_config({"ranks=3"}), {}, [&](Backend& backend, Communicator& communicator) {
    DGC_CHECK(communicator.size() == 3 && backend.device() != nullptr, "a rank without its own");
    ++ranks;
  });
  CHECK(ranks == 3);
}

}  // namespace dgc
