#include "train/rank_training.h"

#include <algorithm>
#include <catch.hpp>

#include "run/run_directory.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tampering.h"
#include "tests/support/tiny.h"

namespace dgc {
namespace {

using namespace test;

// Two ranks train. `tamper` sees what rank 1 gathers.
void train_tampered(const Config& written, const Tampering::Tamper& tamper) {
  const TempRun folder;
  const Datasets sets = open_sets(written);
  const Config config = task_of(written).completed(written, sets);
  RunDirectory run(config, {.out = folder.path() / "run"}, nullptr, {});
  run.begin();
  on_ranks(config, {}, [&](Backend& backend, Communicator& good) {
    Tampering communicator(good, [&](int call, std::span<std::byte> all, std::span<const std::byte> before) {
      if (good.rank() == 1) tamper(call, all, before);
    });
    RankTraining training(config, run, sets.view(), backend, communicator);
    training.begin();
    training.train();
  });
}

}  // namespace

// Invariant 3.
TEST_CASE("a training finds a replica that differs, at the next comparison or at its end") {
  // The model is so large that nothing else that ranks gather is as long as the sum of their gradients.
  const auto config = [](int64_t every) {
    return tiny_config({R"(model={"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 64},
                                                               {"type": "linear", "out": 4}]})",
                        kSgd, "ranks=2", "workers_per_rank=2", fmt::format("check_replicas_every={}", every)});
  };
  size_t longest = 0;
  train_tampered(config(0), [&](int, auto all, auto) { longest = std::max(longest, all.size()); });
  REQUIRE(longest >= (64 * 64 + 64 + 4 * 64 + 4) * sizeof(float));
  const auto trained = [&](int64_t every) {
    int sums = 0;
    train_tampered(config(every), [&](int, std::span<std::byte> all, auto) {
      if (all.size() == longest && ++sums == 3) all[1000] ^= std::byte{64};
    });
  };
  CHECK_THROWS_WITH(trained(1), Catch::Contains("step 3: the weights of rank 1 differ from rank 0's in 1.weight"));
  CHECK_THROWS_WITH(trained(4), Catch::Contains("step 4: the weights of rank 1 differ"));
  CHECK_THROWS_WITH(trained(0), Catch::Contains("step 18: the weights of rank 1 differ"));
}

}  // namespace dgc
