// A language model from a config to its last row.
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "tensor/errors.h"
#include "tests/train/tiny_text.h"
#include "train/datasets.h"
#include "train/evaluate.h"
#include "train/ranks.h"
#include "train/report.h"
#include "train/vocabulary_file.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

constexpr int64_t kSteps = 9;  // of an epoch

// Runs body on each rank of a fresh run.
void on_ranks_of(const Config& written, const std::function<void(Rank&, Communicator&)>& body) {
  const Datasets sets = make_datasets(written);
  const Config config = with_vocabulary(written, sets);
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, sets.data(), backend, communicator);
    body(rank, communicator);
  });
}

StepMetrics step(Rank& rank) {
  rank.train_step();
  rank.finish_steps();
  return rank.next_metrics().value();
}

std::vector<double> losses(const Config& config, int steps) {
  std::vector<double> all;
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    for (int i = 0; i < steps; ++i) all.push_back(step(rank).loss);
  });
  return all;
}

std::vector<float> numbers(const Arena& arena, const std::string& name) {
  for (int i = 0; i < arena.layout().size(); ++i) {
    if (arena.layout().spec(i).name == name) {
      return {arena.view(i).f32(), arena.view(i).f32() + arena.layout().numel(i)};
    }
  }
  throw InternalError("no parameter " + name);
}

// Of all parameters, in turn.
std::vector<float> numbers(const Arena& arena) {
  std::vector<float> all;
  for (int i = 0; i < arena.layout().size(); ++i) {
    const std::vector<float> one = numbers(arena, arena.layout().spec(i).name);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<float> loaded(const Checkpoint& checkpoint, const std::string& file, const std::string& tensor,
                          const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  checkpoint.open(file).load(tensor, {values.data(), shape}, *make_cpu_device());
  return values;
}

void save(Rank& rank, const fs::path& run) {
  const std::string problem = rank.save(CheckpointStore(run), 1);
  DGC_CHECK(problem.empty(), problem);
}

// What a run killed after `step` would have left.
void kill_after(const fs::path& run, int64_t step) {
  for (const fs::path& checkpoint : CheckpointStore(run).list()) {
    if (std::stoll(checkpoint.filename().string().substr(5)) > step) fs::remove_all(checkpoint);
  }
}

}  // namespace

TEST_CASE("language model: a run says losses and perplexities, and keeps its vocabulary") {
  const TinyText text;
  const fs::path run = train(text.config(), {.out = text.path("run")});
  const auto steps = rows_of_kind(run, "step"), evals = rows_of_kind(run, "eval");
  REQUIRE(steps.size() == 2 * kSteps);
  CHECK(steps[0].number("loss") == Approx(std::log(12)).epsilon(0.05));  // ten words, <eos>, <unk>: near a blind guess
  REQUIRE(evals.size() == 2);
  CHECK(evals[0].number("valid_perplexity") == Approx(std::exp(evals[0].number("valid_loss").value())));
  CHECK(evals[0].number("valid_loss").value() < std::log(12));
  CHECK(std::holds_alternative<std::nullptr_t>(*evals[0].find("test_loss")));  // looked at once, at the end
  const Row final = metrics_of(run).back();
  CHECK(final.text("kind") == "final");
  CHECK(final.number("valid_loss") == evals[1].number("valid_loss"));
  CHECK(final.number("test_perplexity") == Approx(std::exp(final.number("test_loss").value())));
  CHECK(run_vocabulary(run).size() == 12);
  CHECK(run_config(run).model.lstm.vocabulary == 12);
  CHECK_THAT(read_file(run / "log.txt"), Catch::Contains("4 workers x 2 streams of 3 words") &&
                                             Catch::Contains("valid perplexity") && Catch::Contains("words/s"));

  const Evaluation e = evaluate_run(run, {});
  CHECK(e.metrics.test_loss == final.number("test_loss"));
  CHECK(e.metrics.valid_loss == final.number("valid_loss"));
  const auto in_small_batches = evaluate_run(run, {.overrides = {"training.eval_batch=1"}, .logits = {}});
  CHECK(in_small_batches.metrics.test_loss == Approx(e.metrics.test_loss).epsilon(1e-5));
  CHECK_THROWS_WITH(evaluate_run(run, {.overrides = {}, .logits = text.path("logits")}), Catch::Contains("--logits"));

  CHECK_THAT(final_table({run}), Catch::Contains("test perplexity") && Catch::Contains("validation perplexity") &&
                                     Catch::Contains("words/s") && !Catch::Contains("accuracy"));
  write_report({run}, text.path("report.html"));
  CHECK_THAT(read_file(text.path("report.html")),
             Catch::Contains("Validation perplexity") && !Catch::Contains("Test accuracy"));
}

TEST_CASE("language model: workers give the same bits as threads and one after another") {
  const TinyText text;
  const std::string optimizer =
      GENERATE(std::string(R"({"type": "dgc", "momentum": 0.5, "sparsity": 0.9, "clip_norm": 0.1})"),
               std::string(R"({"type": "sgd", "momentum": 0, "clip_norm": 0.1})"));
  const auto after = [&](int ranks, int workers) {
    std::pair<std::string, double> outcome;
    on_ranks_of(text.config({"optimizer=" + optimizer, fmt::format("ranks={}", ranks),
                             fmt::format("workers_per_rank={}", workers)}),
                [&](Rank& rank, Communicator& communicator) {
                  for (int i = 0; i < kSteps + 3; ++i) step(rank);
                  rank.check_replicas();
                  const EvalMetrics eval = rank.evaluate_all();
                  if (communicator.rank() == 0) outcome = {rank.weights_xxh64(), *eval.valid_loss + eval.test_loss};
                });
    return outcome;
  };
  const auto one = after(1, 4);
  CHECK(one == after(4, 1));
  CHECK(one == after(2, 2));
  CHECK(one.first != after(1, 2).first);
}

TEST_CASE("language model: a run that is killed after any step and resumed ends as one that was not") {
  const TinyText text;
  const auto variant = GENERATE(
      std::vector<std::string>{},
      std::vector<std::string>{R"(optimizer={"type": "sgd", "clip_norm": 0.25})", "ranks=2", "workers_per_rank=2"});
  auto saving = variant;
  saving.insert(saving.end(), {"checkpoint.every_steps=1", "checkpoint.keep=100"});
  const fs::path whole = train(text.config(saving), {.out = text.path("whole")});
  const auto truth = timeless_rows(whole);
  for (const int64_t stop : {1, 4, 9, 13, 18}) {
    CAPTURE(stop);
    const fs::path killed = text.path(fmt::format("killed{}", stop));
    fs::copy(whole, killed, fs::copy_options::recursive);
    kill_after(killed, stop);
    train(text.config(variant), {.out = killed, .resume = true});
    CHECK(timeless_rows(killed) == truth);
  }
}

TEST_CASE("language model: a stretch begins where the one before it ended, and an epoch from nothing") {
  const TinyText text;
  const auto with = [&](int bptt) {
    return text.config({fmt::format("data.bptt={}", bptt), "model.dropout=0", "data.train_limit=193", "model.init=0.8",
                        "learning_rate.base=1e-12"});
  };
  // 24 words a stream: the mean loss of an epoch is the same however it is cut, as the weights stand still.
  const auto long_ones = losses(with(12), 4), short_ones = losses(with(6), 8);
  CHECK(long_ones[0] == Approx((short_ones[0] + short_ones[1]) / 2).epsilon(1e-6));
  CHECK(long_ones[1] == Approx((short_ones[2] + short_ones[3]) / 2).epsilon(1e-6));
  for (size_t i = 0; i < 4; ++i) CHECK(short_ones[i] == Approx(short_ones[i + 4]).epsilon(1e-6));
}

TEST_CASE("language model: what a stretch begins with matters") {
  // One stream. The second text begins where the first one's second step does, but from nothing.
  const TinyText text;
  text.write("words.txt", "<eos>\n<unk>\na\nb\nc\n");
  const auto first_losses = [&](const std::string& words, int steps) {
    text.write("train.txt", words);
    return losses(text.config({"data.vocabulary=" + text.path("words.txt").string(), "workers_per_rank=1",
                               "training.batch_per_worker=1", "data.bptt=4", "model.dropout=0", "model.init=0.8",
                               "learning_rate.base=1e-12"}),
                  steps);
  };
  const double carried = first_losses("a b b a c a b c b\n", 2)[1], fresh = first_losses("c a b c b\n", 1)[0];
  CHECK(std::fabs(carried - fresh) > 1e-4);
}

TEST_CASE("language model: a skipped step keeps the state too, and it is each worker's own") {
  const TinyText text;
  const fs::path run = text.path("run");
  fs::create_directories(run);
  on_ranks_of(text.config(), [&](Rank& rank, Communicator&) {
    const auto hashes = [&] {
      save(rank, run);
      std::vector<std::string> all;
      const auto saved = newest_checkpoint(run);
      for (const ManifestFile& file : saved->manifest().files) all.push_back(file.xxh64);
      return all;
    };
    CHECK_FALSE(step(rank).skipped);
    CHECK_FALSE(step(rank).skipped);
    const auto before = hashes();
    float& weight = rank.weights().view(1).f32()[0];  // of the first LSTM layer: the state would be NaN too
    const float good = std::exchange(weight, std::nanf(""));
    CHECK(step(rank).skipped);
    weight = good;
    CHECK(hashes() == before);
    CHECK_FALSE(step(rank).skipped);
  });
  const auto checkpoint = newest_checkpoint(run);
  const auto state = [&](int worker) { return loaded(*checkpoint, worker_file(worker), "state.rnn.c_l1", {2, 6}); };
  CHECK(state(0) != state(1));
  CHECK(state(2) != state(3));
}

TEST_CASE("language model: DGC clips each worker's share to clip / sqrt(N), by the norm over all parameters") {
  // A text that repeats itself: all eight streams read the same words, so all four workers have the same gradient g.
  const TinyText text;
  std::string same;
  for (int i = 0; i < 8 * 4; ++i) same += "a b c d e\n";
  text.write("train.txt", same + "a\n");
  const auto moved = [&](const std::string& optimizer) {
    std::vector<float> difference;
    on_ranks_of(text.config({"optimizer=" + optimizer, "model.dropout=0", "data.bptt=24", "data.train_limit=193",
                             R"(learning_rate={"type": "constant", "base": 1})"}),
                [&](Rank& rank, Communicator&) {
                  difference = numbers(rank.weights());
                  step(rank);
                  const std::vector<float> after = numbers(rank.weights());
                  for (size_t i = 0; i < after.size(); ++i) difference[i] -= after[i];
                });
    return difference;
  };
  const auto norm = [](const std::vector<float>& x) {
    double sum = 0;
    for (const float e : x) sum += static_cast<double>(e) * static_cast<double>(e);
    return std::sqrt(sum);
  };
  constexpr double kClip = 0.01;
  const std::string keep_all = R"("momentum": 0, "sparsity": 0, "factor_masking": false)";
  const auto g = moved(R"({"type": "dgc", )" + keep_all + "}");
  const auto clipped = moved(R"({"type": "dgc", "clip_norm": 0.01, )" + keep_all + "}");
  const auto dense = moved(R"({"type": "sgd", "momentum": 0, "clip_norm": 0.01})");
  REQUIRE(norm(g) > 2 * kClip * 2);
  CHECK(norm(clipped) == Approx(4 * kClip / 2).epsilon(1e-3));  // N shares of clip / sqrt(N) each, all alike
  CHECK(norm(dense) == Approx(kClip).epsilon(1e-3));            // of the mean over all workers
  // One factor for all parameters: a norm of each tensor's own would turn the direction.
  double inner = 0;
  for (size_t i = 0; i < g.size(); ++i) inner += static_cast<double>(g[i]) * static_cast<double>(clipped[i]);
  CHECK(inner == Approx(norm(g) * norm(clipped)).epsilon(1e-4));
}

TEST_CASE("language model: rows of words that never come send nothing and stay as they were") {
  const TinyText text;
  text.write("words.txt",
             run_vocabulary(train(text.config({"training.max_steps=1"}), {.out = text.path("one")})).text() +
                 "ghost\nspectre\n");
  const fs::path run = text.path("run");
  fs::create_directories(run);
  const std::string words = "data.vocabulary=" + text.path("words.txt").string();
  std::vector<float> before, after;
  on_ranks_of(text.config({words, "model.tied=false", "optimizer.clip_norm=null"}), [&](Rank& rank, Communicator&) {
    before = numbers(rank.weights(), "encoder.weight");
    for (int i = 0; i < 15; ++i) step(rank);
    after = numbers(rank.weights(), "encoder.weight");
    save(rank, run);
  });
  REQUIRE(after.size() == 14 * 6);
  const auto row = [](const std::vector<float>& table, int64_t word) {
    return std::vector<float>(table.begin() + word * 6, table.begin() + word * 6 + 6);
  };
  const auto checkpoint = newest_checkpoint(run);
  const auto v = loaded(*checkpoint, worker_file(1), "v.encoder.weight", {14, 6});
  for (const int64_t ghost : {12, 13}) {
    CHECK(row(before, ghost) == row(after, ghost));
    CHECK(row(v, ghost) == std::vector<float>(6));
  }
  CHECK(row(before, 0) != row(after, 0));
}

TEST_CASE("language model: a checkpoint has the tied matrix under both of its names, as PyTorch's state_dict") {
  const TinyText text;
  const fs::path run = train(text.config({"training.max_steps=2"}), {.out = text.path("run")});
  const auto checkpoint = newest_checkpoint(run);
  const auto read = [&](const std::string& name) { return loaded(*checkpoint, "weights.safetensors", name, {12, 6}); };
  CHECK(read("encoder.weight") == read("decoder.weight"));
  const fs::path untied =
      train(text.config({"training.max_steps=2", "model.tied=false"}), {.out = text.path("untied")});
  const auto other = newest_checkpoint(untied);
  CHECK(loaded(*other, "weights.safetensors", "encoder.weight", {12, 6}) !=
        loaded(*other, "weights.safetensors", "decoder.weight", {12, 6}));
}

TEST_CASE("language model: another vocabulary than the run's is refused, with the word that differs") {
  const TinyText text;
  const fs::path run = train(text.config({"training.max_steps=4"}), {.out = text.path("run")});
  text.write("train.txt", tiny_text(64) + "zebra w1\n");
  CHECK_THROWS_WITH(train(text.config(), {.out = run, .resume = true}),
                    Catch::Contains("run/vocabulary.txt: this run's vocabulary is another one: word "));
  text.write("train.txt", tiny_text(65));
  const std::string words = run_vocabulary(run).text();
  const std::string first = words.substr(0, words.find('\n')), rest = words.substr(words.find('\n') + 1);
  text.write("words.txt", rest + first + "\n");
  CHECK_THROWS_WITH(
      train(text.config({"data.vocabulary=" + text.path("words.txt").string()}), {.out = run, .resume = true}),
      Catch::Contains("run/vocabulary.txt: this run's vocabulary is another one: word 1 is \"" + first));
  write_file(run / "vocabulary.txt", rest + first + "\n");
  CHECK_THROWS_WITH(evaluate_run(run, {}), Catch::Contains("was trained with another vocabulary"));
}

TEST_CASE("language model: what does not fit is said before anything is made") {
  const TinyText text;
  const auto refused = [&](const std::vector<std::string>& overrides) {
    try {
      train(text.config(overrides), {.out = text.path("run")});
    } catch (const UserError& error) {
      CHECK_FALSE(fs::exists(text.path("run")));
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({"data.bptt=1000"}), Catch::Contains("train.txt: one step of 4 workers with 2 streams of 1000"));
  CHECK_THAT(refused({"model.vocabulary=11"}), Catch::Contains("model.vocabulary: 11, but the data has 12 words"));
  CHECK_THAT(refused({"data.eval_streams=1000"}), Catch::Contains("valid.txt") && Catch::Contains("data.eval_streams"));
  CHECK(refused({"model.vocabulary=20", "training.max_steps=1"}).empty());  // room for more is fine
}

TEST_CASE("language model: resumed with other workers, all streams go on at the same share of their length") {
  const TinyText text;
  const fs::path run = train(text.config({"training.max_steps=4"}), {.out = text.path("run")});
  train(text.config({"workers_per_rank=2"}), {.out = run, .resume = true});
  CHECK_THAT(read_file(run / "log.txt"),
             Catch::Contains("8 of 18 steps of epoch 1 count as done, and each stream of text goes on there"));
  CHECK(metrics_of(run).back().number("epoch") == 2.0);
}

}  // namespace dgc
