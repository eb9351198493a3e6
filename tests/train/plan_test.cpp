#include "train/plan.h"

#include <catch2/catch.hpp>

#include "tensor/errors.h"
#include "tests/train/run_files.h"
#include "tests/train/tiny.h"
#include "train/rank.h"
#include "train/ranks.h"

namespace dgc {
namespace {

constexpr size_t kPaper48 = 0;
static_assert(kWireFormats[kPaper48] == WireFormat::paper48);

double mib(int64_t bytes) { return static_cast<double>(bytes) / 1048576; }

// The most memory that training, evaluating and saving took on a rank.
size_t measured_peak(const Config& config) {
  const auto train = make_dataset(config, Split::train), test = make_dataset(config, Split::test);
  const test::TempRun run;
  size_t peak = 0;
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train, *test}, backend, communicator);
    for (int i = 0; i < 4; ++i) {
      rank.train_step();
      rank.next_metrics();
    }
    if (config.optimizer.flush_at_end) rank.flush();
    rank.evaluate();
    DGC_CHECK(rank.save(CheckpointStore(run.path()), 1).empty(), "saved");
    if (communicator.rank() == 0) peak = rank.peak_bytes();
  });
  return peak;
}

}  // namespace

TEST_CASE("the paper's compression ratios come out of the plan") {
  const auto [file, parameters, dense, sent, ratio] = GENERATE(
      table<std::string, int64_t, double, double, double>({{"alexnet_imagenet", 60'965'224, 232.56, 0.389, 597.7},
                                                           {"resnet50_imagenet", 25'557'032, 97.49, 0.352, 276.7}}));
  const Plan plan = make_plan(load_config(DGC_SOURCE_DIR "/configs/paper/" + file + ".json"));
  CHECK(plan.total.parameters == parameters);
  CHECK(mib(plan.total.dense_bytes()) == Approx(dense).margin(0.005));
  CHECK(mib(plan.total.sent_bytes[kPaper48]) == Approx(sent).margin(0.0005));
  CHECK(static_cast<double>(plan.total.dense_bytes()) / static_cast<double>(plan.total.sent_bytes[kPaper48]) ==
        Approx(ratio).margin(0.1));
}

TEST_CASE("the plan's rows are the model's tensors") {
  const Plan plan = make_plan(test::tiny_config({"optimizer.sparsity=0.9"}));
  REQUIRE(plan.tensors.size() == 5);
  const PlanRow& convolution = plan.tensors[0];
  CHECK(convolution.name == "0.weight");
  CHECK(convolution.shape == Shape{8, 1, 3, 3});
  CHECK(convolution.kept == 7);  // of 72
  CHECK(convolution.sent_bytes[kPaper48] == 7 * 6);
  const PlanRow& scale = plan.tensors[1];
  CHECK(scale.name == "1.weight");
  CHECK(scale.kept == 0);
  CHECK(scale.sent_bytes[kPaper48] == 8 * 4);
  CHECK(plan.total.parameters == 72 + 8 + 8 + 512 + 4);
  CHECK(plan.total.sent_bytes[kPaper48] == 7 * 6 + 51 * 6 + 20 * 4);
}

TEST_CASE("break-even against a dense ring all-reduce") {
  CHECK(break_even_sparsity(4, 6) == Approx(2.0 / 3));     // 4 x 6 B x 1/3 = 8 B
  CHECK(break_even_sparsity(16, 8) == Approx(15.0 / 16));  // 16 x 8 B / 16 = 8 B
  CHECK(break_even_sparsity(2, 4) == 0);
  CHECK(break_even_sparsity(1, 6) == 0);
}

TEST_CASE("the planned memory is within 10 % of the measured peak") {
  const std::string small = R"(model={"type": "resnet", "depth": 8, "classes": 4})";
  const auto variant =
      GENERATE(std::vector<std::string>{test::kSgd}, std::vector<std::string>{test::kDgc},
               std::vector<std::string>{test::kDgc, "training.batch_per_worker=1", "training.eval_batch=1"},
               std::vector<std::string>{test::kDgc, "ranks=2", "workers_per_rank=2", "exchange.wire.values=\"fp16\""},
               std::vector<std::string>{R"(optimizer={"type": "dgc", "sparsity": 0.9, "momentum_correction": false})"},
               std::vector<std::string>{R"(optimizer={"type": "dgc", "sparsity": 0.999, "flush_at_end": true})"});
  const Config config = [&] {
    auto overrides = variant;
    overrides.insert(overrides.end(), {small, "data.channels=3"});
    return test::tiny_config(overrides);
  }();
  CAPTURE(variant);
  CHECK(static_cast<double>(make_plan(config).memory.total()) ==
        Approx(static_cast<double>(measured_peak(config))).epsilon(0.1));
}

}  // namespace dgc
