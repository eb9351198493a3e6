// workers_at_once: workers of a rank that compute at the same time.
#include <catch.hpp>
#include <functional>

#include "data/sampling.h"
#include "tasks/make.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"
#include "tools/bench/phases.h"
#include "train/ranks/on_ranks.h"

namespace dgc {
namespace {

using namespace test;

// One sample has a label that is no class.
class WrongLabel final : public AlteredImages {
 public:
  WrongLabel(const ImageDataset& good, int64_t sample) : AlteredImages(good), sample_(sample) {}
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    const int32_t label = AlteredImages::read(i, draw, out);
    return i == sample_ ? 9 : label;
  }

 private:
  int64_t sample_;
};

}  // namespace

TEST_CASE("workers that compute at the same time have the bits of workers one after another") {
  const TinyText text;
  const TinySpeech speech;
  const auto make =
      GENERATE_REF(std::function([](const std::vector<std::string>& more) { return tiny_config(more); }),
                   std::function([&](const std::vector<std::string>& more) { return text.config(more); }),
                   std::function([&](const std::vector<std::string>& more) { return speech.config(more); }));
  const std::string optimizer = GENERATE(kSgd, kDgc);
  const std::string also = GENERATE("exchange.every_steps=1", "exchange.every_steps=2", "training.accumulate=2");
  CAPTURE(optimizer, also);
  const auto of = [&](int ranks, int workers, int at_once) {
    return outcome_after(
        make({optimizer, also, "threads=2", fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers),
              fmt::format("workers_at_once={}", at_once)}),
        5);
  };
  const RankOutcome truth = of(1, 4, 1);
  CHECK(truth.losses.size() >= 2);
  CHECK(of(1, 4, 4) == truth);
  CHECK(of(1, 4, 3) == truth);
  CHECK(of(2, 2, 2) == truth);
}

TEST_CASE("the phases of a step are measured where workers compute at the same time") {
  const Config config = tiny_config({"workers_per_rank=4", "workers_at_once=2"});
  const Datasets sets = open_sets(config);
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, sets.view(), backend, communicator);
    Phases phases(backend);
    for (int i = 0; i < 3; ++i) step(rank);
    for (const Phases::Phase& phase : phases.take()) DGC_CHECK(phase.milliseconds > 0, phase.name);
  });
}

TEST_CASE("a run goes on with another number of workers at once") {
  const TempRun run;
  const auto go_on = [&](int at_once, int steps) {
    train(tiny_config({fmt::format("workers_at_once={}", at_once), fmt::format("training.max_steps={}", steps)}),
          {.out = run.path() / "run", .resume = true});
    return final_hash(run.path() / "run");
  };
  go_on(1, 4);
  go_on(4, 9);
  const TempRun whole;
  train(tiny_config({"training.max_steps=12"}), {.out = whole.path() / "run"});
  CHECK(go_on(2, 12) == final_hash(whole.path() / "run"));
}

TEST_CASE("what goes wrong in a worker's place ends the step, wherever that is") {
  const int worker = GENERATE(0, 1, 3);
  const Config config = tiny_config({"workers_per_rank=4", "workers_at_once=2", "threads=2"});
  const Datasets sets = open_sets(config);
  std::vector<int32_t> samples;
  Sampler(sampling_of(config, *sets.train)).indices(1, worker, samples);
  const WrongLabel images(dynamic_cast<const ImageDataset&>(*sets.train), samples[0]);
  const auto steps = [&](int count) {
    on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
      Rank rank(config, {images, *sets.test}, backend, communicator);
      make_steps(rank, count);
    });
  };
  CHECK_NOTHROW(steps(1));
  CHECK_THROWS_WITH(steps(2), Catch::Contains("label 9 of 4 classes"));
}

}  // namespace dgc
