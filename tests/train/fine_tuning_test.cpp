#include <sys/stat.h>

#include <catch.hpp>
#include <limits>

#include "config/model_types.h"
#include "tensor/errors.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"

// Runs that start from the weights of others, hold some of them still, or go on after their end.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

const std::string kStep =
    R"(learning_rate={"type": "step", "base": 0.05, "milestones": [1, 2], "factor": 0.5, "warmup_epochs": 0.5})";

// The layers of tiny_config() with another number of classes.
std::string tiny_layers(int64_t convolution, int64_t classes) {
  return fmt::format(
      R"(model.layers=[{{"type": "conv2d", "out": {}, "kernel": 3, "pad": 1, "bias": false}},
          {{"type": "batch_norm", "relu": true}}, {{"type": "max_pool", "kernel": 2, "stride": 2}},
          {{"type": "flatten"}}, {{"type": "dropout", "p": 0.1}}, {{"type": "linear", "out": {}}}])",
      convolution, classes);
}

std::string weights_file(const fs::path& run) {
  return (CheckpointStore(run).list().front() / "weights.safetensors").string();
}

// A tensor of a file, whatever its shape, as bytes.
std::string bytes_of(const std::string& file, const std::string& tensor) {
  const SafetensorsFile weights(read_file(file), file);
  return std::string(weights.tensors().at(tensor).bytes);
}

void write_tensors(const fs::path& file, const std::vector<std::pair<std::string, Shape>>& tensors, float last = 0) {
  std::vector<float> zeros(4096), others;
  std::vector<TensorSource> sources;
  for (const auto& [name, shape] : tensors) sources.push_back({.name = name, .view = {zeros.data(), shape}});
  others.resize(static_cast<size_t>(tensors.back().second.numel()));
  others.back() = last;  // the last number in the file
  sources.back().view = {others.data(), tensors.back().second};
  write_safetensors(file, sources, {}, *make_cpu_device());
}

// One short run, whose weights others start from.
struct Pretrained {
  Pretrained() { train(tiny_config({"training.max_steps=4"}), {.out = run}); }
  TempRun folder;
  fs::path run = folder.path() / "pretrained";
  std::string file() const { return weights_file(run); }
};

}  // namespace

TEST_CASE("a run that starts from weights has all of them, and the statistics") {
  const Pretrained pretrained;
  const Config config = tiny_config({fmt::format("ranks={}", GENERATE(1, 2)), "workers_per_rank=2"});
  std::string before, after;
  double loss = 0;
  on_ranks_of(config, [&](Rank& rank, Communicator& communicator) {
    const std::string random = rank.weights_xxh64();
    rank.start_from({pretrained.file(), rank.network()});
    const EvalMetrics eval = rank.evaluate();
    if (communicator.rank() != 0) return;
    before = random;
    after = rank.weights_xxh64();
    loss = eval.measures[kTestLoss];
  });
  CHECK(before != after);
  CHECK(after == final_hash(pretrained.run));
  CHECK(loss == metrics_of(pretrained.run).back().number("test_loss"));
}

TEST_CASE("a file that fits needs no word, and a resumed run does not read it") {
  const Pretrained pretrained;
  const fs::path run = pretrained.folder.path() / "run", file = pretrained.folder.path() / "copy.safetensors";
  fs::copy(pretrained.file(), file);
  const std::string from = "model.init_from=" + file.string();
  train(tiny_config({from, "training.max_steps=2"}), {.out = run});
  CHECK_THAT(read_file(run / "log.txt"), !Catch::Contains("anew"));
  fs::remove(file);
  train(tiny_config({from, "training.max_steps=4"}), {.out = run, .resume = true});

  const fs::path whole = pretrained.folder.path() / "whole";
  train(tiny_config({"model.init_from=" + pretrained.file(), "training.max_steps=4"}), {.out = whole});
  CHECK(final_hash(run) == final_hash(whole));
  CHECK(final_hash(run) != final_hash(pretrained.run));
}

TEST_CASE("a head of other classes starts anew, and the log says so") {
  const Pretrained pretrained;
  const fs::path run = pretrained.folder.path() / "run";
  train(tiny_config({tiny_layers(8, 3), "data.classes=3", "model.init_from=" + pretrained.file(),
                     R"(model.freeze=["0", "1"])", "training.max_steps=1"}),
        {.out = run});
  const std::string log = read_file(run / "log.txt");
  CHECK_THAT(log, Catch::Contains("has 5.bias as F32 [4], and the model needs [3]: 5.weight and 5.bias start anew"));
  CHECK(bytes_of(weights_file(run), "0.weight") == bytes_of(pretrained.file(), "0.weight"));
}

TEST_CASE("a file without a head starts a new one") {
  const TempRun folder;
  const fs::path file = folder.path() / "headless.safetensors";
  write_tensors(file, {{"0.weight", {8, 1, 3, 3}},
                       {"1.weight", {8}},
                       {"1.bias", {8}},
                       {"1.running_mean", {8}},
                       {"1.running_var", {8}},
                       {"1.num_batches_tracked", {1}}});
  train(tiny_config({"model.init_from=" + file.string(), "training.max_steps=1"}), {.out = folder.path() / "run"});
  CHECK_THAT(read_file(folder.path() / "run" / "log.txt"),
             Catch::Contains("has no 5.bias: 5.weight and 5.bias start anew, and all other tensors are taken"));
}

TEST_CASE("weights in a pipe, or in a file that is larger than all memory, are refused") {
  const TempRun folder;
  const fs::path file = folder.path() / "weights.safetensors";
  const bool is_pipe = GENERATE(true, false);
  if (is_pipe) {
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  } else {
    folder.write("weights.safetensors", "");
    fs::resize_file(file, uint64_t{1} << 40);
  }
  CHECK_THROWS_WITH(train(tiny_config({"model.init_from=" + file.string()}), {.out = folder.path() / "run"}),
                    Catch::StartsWith("model.init_from: cannot read " + file.string()));
}

TEST_CASE("a run in the place of its weights is refused with the file to give") {
  const TempRun folder;
  const std::string run = (folder.path() / "pretrained").string();
  fs::create_directory(run);
  CHECK_THROWS_WITH(train(tiny_config({"model.init_from=" + run}), {.out = folder.path() / "run"}),
                    "model.init_from: " + run + " is a folder, and a file of weights is needed; of a run, give " + run +
                        "/checkpoints/step-.../weights.safetensors");
  folder.write("pretrained/weights.safetensors", "");
  CHECK_THROWS_WITH(train(tiny_config({"model.init_from=" + run}), {.out = folder.path() / "run"}),
                    "model.init_from: " + run + " is a folder, and a file of weights is needed; give " + run +
                        "/weights.safetensors");
}

TEST_CASE("weights that do not fit are refused by the tensor's name, before there is a run") {
  const Pretrained pretrained;
  const fs::path folder = pretrained.folder.path();
  write_tensors(folder / "extra.safetensors", {{"0.weight", {8, 1, 3, 3}},
                                               {"1.weight", {8}},
                                               {"1.bias", {8}},
                                               {"1.running_mean", {8}},
                                               {"1.running_var", {8}},
                                               {"9.weight", {2}}});
  write_tensors(folder / "no_statistics.safetensors",
                {{"0.weight", {8, 1, 3, 3}}, {"1.weight", {8}}, {"1.bias", {8}}, {"5.weight", {4, 128}}});
  const std::vector<std::pair<std::string, Shape>> headless = {
      {"0.weight", {8, 1, 3, 3}}, {"1.weight", {8}}, {"1.bias", {8}}, {"1.running_mean", {8}}, {"1.running_var", {8}}};
  write_tensors(folder / "nan.safetensors", headless, std::numeric_limits<float>::quiet_NaN());
  write_tensors(folder / "infinite.safetensors", headless, -std::numeric_limits<float>::infinity());
  write_file(folder / "text.safetensors", "these are no tensors at all");
  const auto [name, override, sentence] = GENERATE(table<std::string, std::string, std::string>({
      {"absent.safetensors", kDgc, "model.init_from: cannot read"},
      {"text.safetensors", kDgc, "it must be a safetensors file, and docs/fine_tuning.md"},
      {"extra.safetensors", kDgc, "the model has no tensor 9.weight; is the file of another model?"},
      {"nan.safetensors", kDgc, "not all numbers of tensor 1.running_var are finite"},
      {"infinite.safetensors", kDgc, "not all numbers of tensor 1.running_var are finite"},
      {"no_statistics.safetensors", kDgc, "it has no tensor 1.running_mean, which the model needs"},
      {"", tiny_layers(6, 4), "tensor 0.weight is F32 [8, 1, 3, 3] but the model needs F32 [6, 1, 3, 3]"},
      {"", "data.height=10", "tensor 5.weight is F32 [4, 128] but the model needs F32 [4, 160]"},
  }));
  const fs::path file = name.empty() ? fs::path(pretrained.file()) : folder / name;
  const Config config = tiny_config({"model.init_from=" + file.string(), override});
  CHECK_THROWS_AS(train(config, {.out = folder / "run"}), UserError);
  CHECK_THROWS_WITH(train(config, {.out = folder / "run"}), Catch::Contains(sentence));
  CHECK_FALSE(fs::exists(folder / "run"));
}

TEST_CASE("frozen parameters keep their bits, and are neither sent nor remembered") {
  const auto variant =
      GENERATE(std::vector<std::string>{kSgd}, std::vector<std::string>{kSgd, "exchange.dense_values=fp16"},
               std::vector<std::string>{kDgc, "exchange.small_tensors=sparse", "optimizer.flush_at_end=true"},
               std::vector<std::string>{kDgc, "ranks=2", "workers_per_rank=2", "exchange.overlap=on",
                                        "exchange.bucket_mb=0.0001"},
               std::vector<std::string>{kDgc, "exchange.workers_per_group=2"});
  const std::string freeze = GENERATE(R"(["0", "1.weight"])", R"(["1", "5.bias"])");
  CAPTURE(variant, freeze);
  const TempRun folder;
  auto overrides = variant;
  overrides.push_back("model.freeze=" + freeze);
  const Config config = tiny_config(overrides);
  train(config, {.out = folder.path() / "run"});

  // The random numbers of a parameter depend on the seed and its name alone.
  const auto device = make_cpu_device();
  const Network network = make_network(config.model, {8, 8, 1});
  const ParamLayout layout(network.params());
  const Arena start(device, layout);
  initialize(start, config.seed);
  const std::string file = weights_file(folder.path() / "run");
  int64_t trained = 0;
  for (int i = 0; i < layout.size(); ++i) {
    const ParamSpec& spec = layout.spec(i);
    CAPTURE(spec.name);
    const std::string before(static_cast<const char*>(start.view(i).data),
                             static_cast<size_t>(layout.numel(i)) * sizeof(float));
    CHECK((bytes_of(file, spec.name) == before) == spec.frozen);
    if (!spec.frozen) trained += layout.numel(i);
    const auto checkpoint = newest_checkpoint(folder.path() / "run");
    const bool is_dgc = config.optimizer.type == OptimizerType::dgc;
    const SafetensorsFile state = checkpoint->open(is_dgc ? worker_file(0) : kSharedFile);
    CHECK(state.tensors().contains((is_dgc ? "v." : "momentum.") + spec.name) == !spec.frozen);
  }
  CHECK(rows_of_kind(folder.path() / "run", "step").back().integer("dense_bytes") == 4 * trained);
  CHECK(bytes_of(file, "1.running_mean") != std::string(8 * sizeof(float), '\0'));
}

TEST_CASE("the gradient of what is trained does not depend on what is frozen before it") {
  const auto bias_after_a_step = [](const std::string& freeze) {
    std::vector<float> bias;
    on_ranks_of(tiny_config({kSgd, "model.freeze=" + freeze}), [&](Rank& rank, Communicator&) {
      step(rank);
      bias = numbers(rank.weights(), rank.weights().layout().size() - 1);
    });
    return bias;
  };
  CHECK(bias_after_a_step(R"(["0", "1"])") == bias_after_a_step("[]"));
}

TEST_CASE("a name that freezes nothing is refused with the nearest one") {
  const auto [freeze, sentence] = GENERATE(table<std::string, std::string>({
      {R"(["1.wieght"])", R"(model.freeze: no parameter is called "1.wieght"; did you mean "1.weight"?)"},
      {R"(["layer1"])", R"(model.freeze: no parameter is called "layer1"; their names begin with "0", "1", "5")"},
      {R"(["0", "1", "5"])", "model.freeze: no parameter is left to train"},
      {R"([""])", "model.freeze"},
  }));
  const TempRun folder;
  const auto run = [&] { train(tiny_config({"model.freeze=" + freeze}), {.out = folder.path() / "run"}); };
  CHECK_THROWS_AS(run(), UserError);
  CHECK_THROWS_WITH(run(), Catch::Contains(sentence));
  CHECK_FALSE(fs::exists(folder.path() / "run"));
}

TEST_CASE("workers of one group that run one after another are one worker with a larger batch") {
  // Without BatchNorm and dropout, whose statistics and draws are each worker's own.
  const std::string layers = R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 4}])";
  const std::string optimizer = GENERATE(kSgd, kDgc);
  const auto test_loss = [&](const std::vector<std::string>& batches) {
    std::vector<std::string> overrides = {layers, optimizer};
    overrides.insert(overrides.end(), batches.begin(), batches.end());
    double loss = 0;
    on_ranks_of(tiny_config(overrides), [&](Rank& rank, Communicator&) {
      for (int i = 0; i < 6; ++i) step(rank);
      loss = rank.evaluate().measures[kTestLoss];
    });
    return loss;
  };
  std::vector<std::string> micro = {"workers_per_rank=4", "training.batch_per_worker=4"};
  if (optimizer == kDgc) micro.push_back("exchange.workers_per_group=4");
  CHECK(test_loss(micro) == Approx(test_loss({"workers_per_rank=1", "training.batch_per_worker=16"})).epsilon(1e-4));
}

TEST_CASE("a finished run that gets more epochs ends as if it had had them from the start") {
  const auto variant =
      GENERATE(std::vector<std::string>{kDgc, kStep}, std::vector<std::string>{kSgd, "learning_rate.type=constant"});
  const TempRun folder;
  auto longer = variant, shorter = variant;
  longer.push_back("training.epochs=3");
  shorter.push_back("training.epochs=1");
  const fs::path whole = train(tiny_config(longer), {.out = folder.path() / "whole"});
  const fs::path run = train(tiny_config(shorter), {.out = folder.path() / "run"});
  CHECK(rows_of_kind(run, "step").size() == 6);
  train(tiny_config(longer), {.out = run, .resume = true});
  CHECK(timeless_rows(run) == timeless_rows(whole));
  CHECK_THROWS_WITH(train(tiny_config(shorter), {.out = run, .resume = true}),
                    Catch::EndsWith(": it is at epoch 3, and training.epochs is 1; resume with more epochs"));
}

TEST_CASE("a schedule over all epochs does not get more of them") {
  const std::string type = GENERATE("cosine", "polynomial");
  const TempRun folder;
  const std::string schedule = "learning_rate.type=" + type;
  train(tiny_config({schedule, "training.epochs=1"}), {.out = folder.path() / "run"});
  const auto more = [&] { train(tiny_config({schedule}), {.out = folder.path() / "run", .resume = true}); };
  CHECK_THROWS_WITH(more(), Catch::Contains("training.epochs = 1 and cannot be resumed with 3, as learning_rate.type"));
}

TEST_CASE("a head of another size is not one of other classes") {
  const TempRun folder;
  const auto layers = [](int pool, int out) {
    return fmt::format(R"(model.layers=[{{"type": "conv2d", "out": 8, "kernel": 3, "pad": 1, "bias": false}},
                       {{"type": "batch_norm", "relu": true}}, {{"type": "max_pool", "kernel": {0}, "stride": {0}}},
                       {{"type": "flatten"}}, {{"type": "dropout", "p": 0.1}}, {{"type": "linear", "out": {1}}}])",
                       pool, out);
  };
  train(tiny_config({layers(4, 3), "data.classes=3", "training.max_steps=1"}), {.out = folder.path() / "a"});
  const std::string file = (newest_checkpoint(folder.path() / "a")->path() / "weights.safetensors").string();
  CHECK_THROWS_WITH(
      train(tiny_config({"model.init_from=" + file, "training.max_steps=1"}), {.out = folder.path() / "b"}),
      Catch::Contains("tensor 5.weight is F32 [3, 32] but the model needs F32 [4, 128]"));
}

}  // namespace dgc
