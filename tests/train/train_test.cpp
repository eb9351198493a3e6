#include <catch.hpp>
#include <cmath>
#include <cstring>
#include <numbers>

#include "tasks/make.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tools/evaluate.h"

namespace dgc {
namespace {

using namespace test;

std::vector<int64_t> eval_steps(const std::filesystem::path& run) {
  std::vector<int64_t> steps;
  for (const Row& row : rows_of_kind(run, "eval")) steps.push_back(*row.integer("step"));
  return steps;
}

}  // namespace

TEST_CASE("a run leaves what it promises") {
  const TempRun temp;
  const Config config = tiny_config();
  const auto run = train(config, {.out = temp.path() / "run"});
  CHECK(run == temp.path() / "run");
  CHECK(run_config(run) == config);
  const auto steps = rows_of_kind(run, "step");
  REQUIRE(steps.size() == 18);
  for (size_t i = 0; i < steps.size(); ++i) {
    CAPTURE(i);
    CHECK(steps[i].integer("step") == static_cast<int64_t>(i) + 1);
    CHECK(steps[i].number("sparsity") == (i < 3   ? 0.5
                                          : i < 6 ? 0.75
                                                  : 0.98));              // the warm-up's phases take 3 steps each
    const double turn = std::numbers::pi * static_cast<double>(i) / 18;  // half a cosine over all steps
    CHECK(steps[i].number("lr").value() == Approx(0.05 / 2 * (1 + std::cos(turn))));
  }
  // 8*9 + 4*128 elements in two tensors: 1 and 10 are kept. BatchNorm's 16 and 4 biases travel dense.
  // Header 48; block end 4, offset 2 (padded to 4), value 4; block end 4, offsets 20, values 40; padded to 16.
  CHECK(steps[6].text("transport") == "sparse");
  CHECK(steps[6].integer("sent_bytes") == 48 + 80 + 20 * 4);
  // Half of 72 and of 512: 48 + 1760, which four workers' messages bring to more than 8 bytes per element.
  CHECK(steps[0].text("transport") == "dense");
  CHECK(steps[0].integer("sent_bytes") == (72 + 512 + 20) * 4);
  CHECK(steps[6].integer("dense_bytes") == (72 + 16 + 512 + 4) * 4);
  CHECK(steps[17].number("epoch") == 3.0);
  CHECK(CheckpointStore(run).list().size() == 2);
  CHECK(metrics_of(run).back().text("kind") == "final");
  CHECK(read_file(run / "log.txt").find("4 workers x batch 4") != std::string::npos);
}

TEST_CASE("a plateau schedule gives the steps behind an evaluation the rate that it asks for") {
  const TempRun temp;
  const Config config =
      tiny_config({R"(learning_rate={"type": "plateau", "base": 0.2, "factor": 0.5, "patience": 0, "threshold": 0.9})",
                   "training.epochs=5"});
  const auto run = train(config, {.out = temp.path() / "run"});
  const LrSchedule schedule = make_lr_schedule(config);
  PlateauState state;
  double rate = 0.2;
  for (const Row& row : metrics_of(run)) {
    if (row.text("kind") == "step") CHECK(row.number("lr") == rate);
    if (row.text("kind") != "eval") continue;
    state = plateau_after(schedule, state, row.number("test_loss").value());
    rate = 0.2 * std::pow(0.5, static_cast<double>(state.plateaus));
  }
  CHECK(rate < 0.1);  // several losses did not fall by nine tenths
}

TEST_CASE("the accuracy of a checkpoint is the final row's") {
  const TempRun temp;
  const auto variant = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"optimizer.flush_at_end=true"},
                                std::vector<std::string>{"optimizer.flush_at_end=true", "training.max_steps=7"},
                                std::vector<std::string>{kSgd, "ranks=2", "workers_per_rank=2"});
  CAPTURE(variant);
  const auto run = train(tiny_config(variant), {.out = temp.path() / "run"});
  const Row final = metrics_of(run).back();
  const Evaluation e = evaluate_run(run, {.overrides = {}, .logits = temp.path() / "logits.safetensors"});
  CHECK(e.weights_xxh64 == final.text("weights_xxh64"));
  CHECK(e.metrics.measures[kTestLoss] == final.number("test_loss"));
  CHECK(e.metrics.measures[kTestAccuracy] == final.number("test_accuracy"));
  CHECK(e.metrics.measures[kTestTop5] == final.number("test_top5"));

  std::vector<float> logits(30 * 4);
  const auto path = (temp.path() / "logits.safetensors").string();
  const SafetensorsFile file(read_file(path), path);
  file.load("logits", {logits.data(), {30, 4}}, *make_cpu_device());
  const SafetensorsFile::Entry& labels = file.tensors().at("labels");
  CHECK(labels.dtype == "I64");
  CHECK(labels.shape == std::vector<int64_t>{30});
  double right = 0;
  for (size_t i = 0; i < 30; ++i) {  // the synthetic set's labels are 0 1 2 3 0 1 ...
    int64_t label = -1;
    std::memcpy(&label, labels.bytes.data() + i * sizeof(label), sizeof(label));
    CHECK(label == static_cast<int64_t>(i % 4));
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(4 * i);
    right += std::max_element(row, row + 4) - row == static_cast<std::ptrdiff_t>(i % 4) ? 1 : 0;
  }
  CHECK(e.metrics.measures[kTestAccuracy] == right / 30);
}

TEST_CASE("flushing at the end changes the final weights alone") {
  const TempRun temp;
  const auto plain = train(tiny_config(), {.out = temp.path() / "plain"});
  const auto flushed = train(tiny_config({"optimizer.flush_at_end=true"}), {.out = temp.path() / "flushed"});
  CHECK(final_hash(plain) != final_hash(flushed));
  const auto a = timeless_rows(plain), b = timeless_rows(flushed);
  REQUIRE(a.size() == b.size());
  CHECK(std::equal(a.begin(), a.end() - 2, b.begin()));
}

TEST_CASE("evaluations come every so many epochs and at the end") {
  const TempRun temp;
  const auto [every, max_steps, expected] = GENERATE(table<int, std::string, std::vector<int64_t>>(
      {{1, "null", {6, 12, 18}}, {2, "null", {12, 18}}, {0, "null", {18}}, {1, "8", {6, 8}}, {0, "12", {12}}}));
  const Config config = tiny_config(
      {fmt::format("training.eval_every_epochs={}", every), fmt::format("training.max_steps={}", max_steps)});
  const auto run = train(config, {.out = temp.path() / "run"});
  CHECK(eval_steps(run) == expected);
  CHECK(metrics_of(run).back().integer("step") == expected.back());
  CHECK(rows_of_kind(run, "step").size() == static_cast<size_t>(expected.back()));
}

TEST_CASE("an evaluation's result does not depend on its batch") {
  const TempRun temp;
  const auto run = train(tiny_config({"training.max_steps=6"}), {.out = temp.path() / "run"});
  const EvalMetrics whole = evaluate_run(run, {}).metrics;
  for (const int batch : {1, 7, 15, 29, 30, 1000}) {
    const auto other = evaluate_run(run, {.overrides = {fmt::format("training.eval_batch={}", batch)}, .logits = {}});
    CHECK(other.metrics.measures[kTestAccuracy] == whole.measures[kTestAccuracy]);
    CHECK(other.metrics.measures[kTestLoss] == Approx(whole.measures[kTestLoss]).epsilon(1e-5));
  }
}

TEST_CASE("DGC at 99 % learns the synthetic set as dense momentum SGD does") {
  const TempRun temp;
  const std::vector<std::string> longer = {"data.train_samples=512", "data.test_samples=128", "training.epochs=8",
                                           "data.noise=2"};
  const auto accuracy = [&](const std::string& optimizer, const std::string& name) {
    auto overrides = longer;
    overrides.push_back(optimizer);
    const auto run = train(tiny_config(overrides), {.out = temp.path() / name});
    return *metrics_of(run).back().number("test_accuracy");
  };
  const double dense = accuracy(kSgd, "dense");
  const double sparse = accuracy(R"(optimizer={"type": "dgc", "momentum": 0.9, "nesterov": true, "weight_decay": 1e-4,
                                     "sparsity": 0.99, "warmup": {"epochs": 1}})",
                                 "sparse");
  CHECK(dense > 0.9);
  CHECK(sparse > dense - 0.05);
}

}  // namespace dgc
