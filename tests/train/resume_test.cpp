#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <catch.hpp>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>

#include "kernels/backend.h"
#include "run/resumable.h"
#include "tensor/errors.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/signal_this_process.h"
#include "tests/support/tiny.h"
#include "train/ranks/interrupt.h"

// Invariant 5: stop and resume, at any step, equals never having stopped.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

const std::string kPlateau =
    R"(learning_rate={"type": "plateau", "base": 0.5, "factor": 0.5, "patience": 0, "threshold": 0.9})";
const std::string kDropping =
    R"(optimizer={"type": "dgc", "momentum": 0.9, "sparsity": 0.9, "clip_norm": 1, "momentum_correction": false})";

// Overrides that keep a checkpoint of every step.
std::vector<std::string> every_step(std::vector<std::string> overrides) {
  overrides.insert(overrides.end(), {"checkpoint.every_steps=1", "checkpoint.keep=100"});
  return overrides;
}

// All files but the log.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "log.txt") continue;
    files[entry.path().string()] = entry.is_regular_file() ? read_file(entry.path()) : "folder";
  }
  return files;
}

void damage(const fs::path& file) {
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(file, bytes);
}

void set_in_manifest(const fs::path& checkpoint, const std::string& key, const auto& value) {
  Manifest manifest = Checkpoint(checkpoint).manifest();
  manifest.values.set(key, value);
  const std::string text = to_manifest_json(manifest);
  write_file(checkpoint / "manifest.json", text);
  write_file(checkpoint / "manifest.xxh64", xxh64_hex(text));
}

// Sends this process SIGTERM when a message contains a text.
class SignalAt : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit SignalAt(std::string text) : text_(std::move(text)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view said(message.payload.data(), message.payload.size());
    if (said.find(text_) != std::string_view::npos) signal_this_process(SIGTERM);
  }
  void flush_() override {}

  std::string text_;
};

}  // namespace

TEST_CASE("a run that is killed after any step and resumed ends as one that was not") {
  const auto variant =
      GENERATE(std::vector<std::string>{kDgc, kPlateau},
               std::vector<std::string>{kDgc, "ranks=2", "workers_per_rank=2", "exchange.wire.values=\"fp16\"",
                                        "exchange.small_tensors=\"dense_fp16\"", "optimizer.flush_at_end=true"},
               std::vector<std::string>{kDgc, "exchange.wire.values=\"int8\"", "exchange.wire.indices=\"rice\"",
                                        "exchange.small_tensors=\"sparse\""},
               std::vector<std::string>{kDgc, "ranks=4", "workers_per_rank=1", "exchange.workers_per_group=2",
                                        "optimizer.flush_at_end=true"},
               std::vector<std::string>{kDgc, "ranks=2", "workers_per_rank=2", "exchange.algorithm=split_reduce",
                                        "exchange.transport=sparse", "optimizer.flush_at_end=true"},
               std::vector<std::string>{kDgc, "ranks=2", "workers_per_rank=2", "exchange.wire.values=\"fp16\"",
                                        "exchange.small_tensors=\"dense_fp16\"", "exchange.overlap=on",
                                        "exchange.bucket_mb=0.0001", "optimizer.flush_at_end=true"},
               std::vector<std::string>{kSgd, kPlateau},
               std::vector<std::string>{kDgc, "ranks=2", "workers_per_rank=2", "training.accumulate=2"},
               std::vector<std::string>{kDgc, "ranks=2", "workers_per_rank=2", R"(model.freeze=["0", "1.bias"])"},
               std::vector<std::string>{kSgd, "ranks=2", "workers_per_rank=2", "exchange.dense_values=fp16"},
               std::vector<std::string>{kDropping});
  CAPTURE(variant);
  const TempRun whole;
  train(tiny_config(every_step(variant)), {.out = whole.path() / "run"});
  const auto truth = timeless_rows(whole.path() / "run");
  REQUIRE(truth.size() == 18 + 3 + 1);

  for (const int64_t stop : {0, 2, 6, 11, 17, 18}) {  // in warm-up, at ends of epochs, in between
    CAPTURE(stop);
    const TempRun killed;
    fs::copy(whole.path() / "run", killed.path() / "run", fs::copy_options::recursive);
    kill_after(killed.path() / "run", stop);
    train(tiny_config(variant), {.out = killed.path() / "run", .resume = true});
    CHECK(timeless_rows(killed.path() / "run") == truth);
  }
}

TEST_CASE("a signal during an evaluation is heard there, and the resumed run makes it anew") {
  const TempRun folder;
  const std::string ranks = GENERATE("ranks=1", "ranks=2");
  // Epochs of one step, whose message comes just before the evaluation.
  const Config config = tiny_config({kPlateau, ranks, "workers_per_rank=2", "training.batch_per_worker=8",
                                     ranks == "ranks=1" ? "data.train_samples=16" : "data.train_samples=32"});
  const fs::path whole = train(config, {.out = folder.path() / "whole"}), stopped = folder.path() / "stopped";
  const std::string step = GENERATE("step 1/3", "step 3/3");
  {
    const auto sink = std::make_shared<SignalAt>(step);
    spdlog::default_logger()->sinks().push_back(sink);
    CHECK_THROWS_AS(train(config, {.out = stopped}), Interrupted);
    std::erase(spdlog::default_logger()->sinks(), sink);
  }
  CHECK(newest_checkpoint(stopped)->manifest().values.boolean("owes_evaluation") == true);
  train(config, {.out = stopped, .resume = true});
  CHECK(final_hash(stopped) == final_hash(whole));
  CHECK(timeless_rows(stopped) == timeless_rows(whole));
}

TEST_CASE("a run that max_steps ended goes on as if it had not") {
  const int64_t stop = GENERATE(4, 6, 9);
  const std::vector<std::string> variant = {kDgc, kPlateau};
  const TempRun whole, stopped;
  train(tiny_config(variant), {.out = whole.path() / "run"});
  auto limited = variant;
  limited.push_back(fmt::format("training.max_steps={}", stop));
  train(tiny_config(limited), {.out = stopped.path() / "run"});
  CHECK(rows_of_kind(stopped.path() / "run", "step").size() == static_cast<size_t>(stop));
  train(tiny_config(variant), {.out = stopped.path() / "run", .resume = true});
  CHECK(timeless_rows(stopped.path() / "run").back() == timeless_rows(whole.path() / "run").back());
}

TEST_CASE("resuming passes over a damaged checkpoint and ends in the same bits") {
  const Config config = tiny_config({"checkpoint.every_steps=4", "checkpoint.keep=3"});
  const TempRun run;
  train(config, {.out = run.path() / "run"});
  const std::string truth = final_hash(run.path() / "run");
  const auto checkpoints = CheckpointStore(run.path() / "run").list();
  REQUIRE(checkpoints.size() == 3);
  damage(checkpoints[0] / "weights.safetensors");
  damage(checkpoints[1] / "worker-0003.safetensors");
  train(config, {.out = run.path() / "run", .resume = true});
  CHECK(final_hash(run.path() / "run") == truth);
  CHECK(read_file(run.path() / "run" / "log.txt").find("weights.safetensors is damaged") != std::string::npos);
  for (const fs::path& checkpoint : CheckpointStore(run.path() / "run").list()) CHECK_NOTHROW(Checkpoint(checkpoint));
}

TEST_CASE("nothing is started over when all checkpoints are damaged") {
  const Config config = tiny_config({"training.max_steps=4"});
  const TempRun run;
  train(config, {.out = run.path() / "run"});
  for (const fs::path& checkpoint : CheckpointStore(run.path() / "run").list()) damage(checkpoint / "manifest.json");
  const auto before = contents(run.path());
  CHECK_THROWS_AS(train(config, {.out = run.path() / "run", .resume = true}), UserError);
  CHECK(contents(run.path()) == before);
}

TEST_CASE("a config that would change results cannot be resumed, and its key is named") {
  const TempRun run;
  const auto resume = [&](const std::string& override) {
    train(tiny_config({"training.max_steps=3", override}), {.out = run.path() / "run", .resume = true});
  };
  resume("seed=3");  // nothing is there yet: starts from the beginning
  const auto before = contents(run.path());
  const std::pair<const char*, const char*> refused[] = {
      {"optimizer.sparsity=0.9", "optimizer.sparsity = 0.98"},
      {"seed=4", "seed = 3"},
      {"training.batch_per_worker=2", "training.batch_per_worker"},
      {"training.epochs=4", "training.epochs"},
      {"learning_rate.base=0.1", "learning_rate.base"},
      {"exchange.algorithm=split_reduce", "exchange.algorithm"},
      {"exchange.workers_per_group=2", "workers_per_group"},
      {"exchange.wire.values=\"fp16\"", "exchange.wire.values"},
      {"threads=2", "threads = 1 and cannot be resumed with 2, as "}};
  for (const auto& [override, key] : refused) {
    CHECK_THROWS_AS(resume(override), UserError);
    CHECK_THROWS_WITH(resume(override), Catch::Contains(key));
  }
  CHECK(contents(run.path()) == before);

  const std::string truth = final_hash(train(tiny_config({"training.max_steps=8"}), {.out = run.path() / "whole"}));
  for (const char* harmless : {"checkpoint.keep=1", "check_replicas_every=1", "data.threads=2",
                               "exchange.wire.indices=\"rice\"", "exchange.transport=sparse", "exchange.overlap=on",
                               "exchange.bucket_mb=1", "name=\"other\"", "training.eval_batch=7"}) {
    const fs::path copy = run.path() / "copy";
    fs::copy(run.path() / "run", copy, fs::copy_options::recursive);
    CHECK_NOTHROW(train(tiny_config({"training.max_steps=8", harmless}), {.out = copy, .resume = true}));
    CHECK(final_hash(copy) == truth);
    fs::remove_all(copy);
  }
}

TEST_CASE("a run whose data has other classes by now cannot be resumed, and the first of them is named") {
  const TempRun run;
  const auto out = run.path() / "run";
  const Config config = tiny_config();
  {
    RunDirectory begun(config, {.out = out}, nullptr, {"ant", "bee", "cat"});
    begun.begin();
    begun.describe();
  }
  MetricsWriter(out, {0}).write(example_step(1));
  const auto resumed = [&](const std::vector<std::string>& names) {
    try {
      const RunDirectory opened(config, {.out = out, .resume = true}, nullptr, names);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto before = contents(out);
  using Catch::Contains;
  CHECK_THAT(
      resumed({"ant", "bee", "zcat"}),
      Contains(R"(run/classes.json: this run's classes are other ones: class 2 is "cat" there, and "zcat" now)"));
  CHECK_THAT(resumed({"ant", "bee"}), Contains(R"(class 2 is "cat" there, and nothing now)"));
  CHECK_THAT(resumed({"ant", "bee", "cat", "dog"}), Contains(R"(class 3 is nothing there, and "dog" now)"));
  CHECK(contents(out) == before);
  CHECK(resumed({"ant", "bee", "cat"}).empty());
  CHECK(resumed({}).empty());
  fs::remove(out / "classes.json");  // as a run of before there were names
  CHECK(resumed({"dog"}).empty());
}

TEST_CASE("a key that is free elsewhere says why it is not here") {
  const auto refusal = [](const std::vector<std::string>& made_with, const std::vector<std::string>& now) {
    try {
      require_resumable("run", tiny_config(made_with), tiny_config(now));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal({"training.eval_batch=7"}, {"training.eval_batch=8"}).empty());
  CHECK_THAT(refusal({kPlateau, "training.eval_batch=7"}, {kPlateau, "training.eval_batch=8"}),
             Catch::Contains("training.eval_batch = 7 and cannot be resumed with 8, as the last digits"));
  CHECK(refusal({"device=cuda:0"}, {"device=cuda:1"}).empty());
  CHECK(refusal({"device=auto"}, {cuda_devices().empty() ? "device=cpu" : "device=cuda:0"}).empty());
  CHECK_THAT(refusal({"device=cpu"}, {"device=cuda:0"}),
             Catch::Contains(R"(device = "cpu" and cannot be resumed with "cuda:0", as a GPU rounds otherwise)"));
  CHECK_THAT(refusal({}, {"threads=4"}), Catch::Contains("rounds them otherwise; give the same --set again"));
  CHECK(refusal({"threads=0"}, {"threads=4"}).empty());
  CHECK_THAT(refusal({"learning_rate.type=cosine"}, {"training.epochs=4", "learning_rate.type=polynomial"}),
             Catch::Contains("learning_rate.type = \"cosine\" and cannot be resumed with \"polynomial\"; give the same "
                             "--set again, or resume with the run's own config (dgc train run/config.json --resume)"));
}

TEST_CASE("a finished run is left as it is, unless there are more steps to make") {
  const TempRun run;
  const auto out = run.path() / "run";
  const auto variant = GENERATE(std::vector<std::string>{"training.max_steps=8"}, std::vector<std::string>{},
                                std::vector<std::string>{"optimizer.flush_at_end=true"});
  train(tiny_config(variant), {.out = out});
  const auto all_of = [&] {
    auto all = contents(out);
    all["log"] = read_file(out / "log.txt");
    return all;
  };
  const auto before = all_of();
  auto harmless = variant;
  harmless.insert(harmless.end(), {"workers_per_rank=2", "checkpoint.keep=1"});
  for (const auto& overrides : {variant, harmless}) {
    CHECK(train(tiny_config(overrides), {.out = out, .resume = true}) == out);
    CHECK(all_of() == before);
  }
  auto shorter = variant;
  shorter.emplace_back("training.max_steps=5");
  train(tiny_config(shorter), {.out = out, .resume = true});
  CHECK(all_of() == before);
}

TEST_CASE("the results of a run whose checkpoints were removed are not trained over") {
  const TempRun run;
  const auto out = run.path() / "run";
  train(tiny_config({"training.max_steps=4"}), {.out = out});
  fs::remove_all(out / "checkpoints");
  const std::string rows = read_file(out / "metrics.jsonl");
  for (const char* steps : {"training.max_steps=4", "training.max_steps=8"}) {
    CHECK_THROWS_WITH(train(tiny_config({steps}), {.out = out, .resume = true}),
                      Catch::Contains(out.string() + " has a result and no checkpoint to go on from: --overwrite"));
    CHECK(read_file(out / "metrics.jsonl") == rows);
  }
  train(tiny_config({"training.max_steps=8"}), {.out = out, .overwrite = true});
  CHECK(metrics_of(out).back().integer("step") == 8);

  fs::remove_all(out / "checkpoints");  // with half a row at the end the metrics hold no result
  fs::resize_file(out / "metrics.jsonl", fs::file_size(out / "metrics.jsonl") - 5);
  train(tiny_config({"training.max_steps=4"}), {.out = out, .resume = true});
  CHECK(metrics_of(out).back().integer("step") == 4);
}

TEST_CASE("the wall time of all attempts adds up") {
  const TempRun run;
  const auto out = run.path() / "run";
  train(tiny_config({"training.max_steps=4"}), {.out = out});
  const auto wall_seconds = [&] { return metrics_of(out).back().number("wall_seconds").value(); };
  const double first = wall_seconds();
  const fs::path checkpoint = CheckpointStore(out).list().front();
  const Manifest manifest = Checkpoint(checkpoint).manifest();
  CHECK(manifest.values.number("wall_seconds").value() > 0);
  CHECK(manifest.values.number("wall_seconds").value() <= first);
  set_in_manifest(checkpoint, "wall_seconds", 1000.0);
  train(tiny_config({"training.max_steps=5"}), {.out = out, .resume = true});
  CHECK(wall_seconds() > 1000);
}

TEST_CASE("a run goes on with other arithmetic only where the machine chose it, and says so") {
  const TempRun run;
  const fs::path out = train(tiny_config({"training.max_steps=4"}), {.out = run.path() / "run"});
  const fs::path checkpoint = CheckpointStore(out).list().front();
  CHECK(Checkpoint(checkpoint).manifest().values.integer("threads") == 1);
  const auto go_on = [&](const std::string& override) {
    train(tiny_config({"training.max_steps=5", override}), {.out = out, .resume = true});
  };
  set_in_manifest(checkpoint, "threads", int64_t{0});
  CHECK_THROWS_WITH(go_on("device=cpu"), Catch::Contains("was made on a GPU") && Catch::Contains("on cpu"));
  CHECK_THROWS_AS(go_on("device=auto"), UserError);
  set_in_manifest(checkpoint, "threads", int64_t{700});
  CHECK_THROWS_WITH(go_on("threads=1"),
                    Catch::Contains("made with 700 compute threads in each rank, and this run has 1,") &&
                        Catch::Contains("set threads to 700"));
  CHECK(rows_of_kind(out, "step").size() == 4);
  CHECK_NOTHROW(go_on("threads=0"));
  CHECK_THAT(read_file(out / "log.txt"), Catch::Contains("it goes on, and --set threads=700 would keep the bits"));
  CHECK(rows_of_kind(out, "step").size() == 5);
}

TEST_CASE("a run that goes on where a library or processor rounds otherwise says so") {
  const TempRun run;
  const fs::path out = train(tiny_config({"training.max_steps=4"}), {.out = run.path() / "run"});
  const fs::path checkpoint = CheckpointStore(out).list().front();
  const std::string here = make_backend("cpu", 1)->arithmetic();
  CHECK_THAT(here, Catch::StartsWith("oneDNN "));
  CHECK(Checkpoint(checkpoint).manifest().values.text("arithmetic") == here);
  const bool is_other = GENERATE(true, false);
  if (is_other) set_in_manifest(checkpoint, "arithmetic", std::string("oneDNN 1.0.0, AVX2"));
  train(tiny_config({"training.max_steps=5"}), {.out = out, .resume = true});
  const std::string log = read_file(out / "log.txt");
  CHECK((log.find("was made with oneDNN 1.0.0, AVX2, and the run goes on with " + here) != log.npos) == is_other);
  CHECK(rows_of_kind(out, "step").size() == 5);
}

TEST_CASE("a run that made no step gives way to the next one, whatever its config") {
  const TempRun run;
  const auto out = run.path() / "run";
  {
    RunDirectory failed(tiny_config({"seed=5"}), {.out = out}, nullptr, {});
    failed.begin();
    failed.describe();
    run.write("run/metrics.jsonl", GENERATE("", "{\"kind\":\"st"));
    run.write("run/vocabulary.txt", "of another model");
    run.write("run/notes.txt", "mine");
  }
  const bool resume = GENERATE(false, true);
  train(tiny_config({"training.max_steps=3"}), {.out = out, .resume = resume});
  CHECK(run_config(out).seed == 3);
  CHECK(rows_of_kind(out, "step").size() == 3);
  CHECK_FALSE(fs::exists(out / "vocabulary.txt"));
  CHECK(run.read("run/notes.txt") == "mine");
}

TEST_CASE("a run takes the place of another one when it is told to") {
  const TempRun run;
  const auto out = run.path() / "run", fresh = run.path() / "fresh";
  train(tiny_config({"seed=5"}), {.out = out});
  const std::vector<std::string> kept = {"run/notes.txt", "run/checkpoints/notes.txt"};
  for (const std::string& name : kept) run.write(name, "mine");
  const Config config = tiny_config({"training.max_steps=3"});
  for (const fs::path& folder : {out, fresh}) {
    train(config, {.out = folder, .overwrite = true});
    CHECK(run_config(folder).seed == 3);
    CHECK(CheckpointStore(folder).list().size() == 1);
  }
  CHECK(final_hash(out) == final_hash(fresh));
  CHECK(read_file(out / "log.txt").find("step 18") == std::string::npos);
  const auto is_events = [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("events.out.tfevents.");
  };
  CHECK(std::ranges::count_if(fs::directory_iterator(out), fs::directory_iterator(), is_events) == 1);
  for (const std::string& name : kept) CHECK(run.read(name) == "mine");
}

TEST_CASE("what people keep among checkpoints does not block a start behind one that failed") {
  const TempRun run;
  const auto out = run.path() / "run";
  train(tiny_config({"seed=5"}), {.out = out});
  run.write("run/checkpoints/notes.txt", "mine");
  RunDirectory(tiny_config({"seed=6"}), {.out = out, .overwrite = true}, nullptr, {}).begin();  // and fails then
  train(tiny_config({"training.max_steps=3"}), {.out = out});
  CHECK(metrics_of(out).back().integer("step") == 3);
  CHECK(run.read("run/checkpoints/notes.txt") == "mine");
}

TEST_CASE("a run that finds no memory, or no weights to begin with, does not take the place of another one") {
  const TempRun run;
  const fs::path out = train(tiny_config({"training.max_steps=3"}), {.out = run.path() / "run"});
  const auto before = contents(out);
  std::string layers = R"([{"type": "flatten"})";  // of 149 TiB
  for (int i = 0; i < 1000; ++i) layers += R"(, {"type": "linear", "out": 200000})";
  layers += R"(, {"type": "linear", "out": 4}])";
  CHECK_THROWS_WITH(train(tiny_config({"model.layers=" + layers}), {.out = out, .overwrite = true}),
                    Catch::Contains("out of memory"));
  CHECK(contents(out) == before);
  // Weights of the very run that is replaced would be gone before the new one has any that are saved.
  const std::string own = (CheckpointStore(out).list().front() / "weights.safetensors").string();
  CHECK_THROWS_WITH(train(tiny_config({"model.init_from=\"" + own + "\""}), {.out = out, .overwrite = true}),
                    "model.init_from: --overwrite would remove " + own + " with the run in " + out.string() +
                        ": copy the file elsewhere first");
  CHECK(contents(out) == before);
}

TEST_CASE("a folder that is no run directory is never overwritten") {
  const TempRun run;
  const auto [file, text] = GENERATE(table<std::string, std::string>({{"config.json", "{\"hidden_size\": 768}"},
                                                                      {"metrics.jsonl", "{\"loss\": 1}\n"},
                                                                      {"checkpoints/mine.pt", "weights"}}));
  fs::create_directories((run.path() / "run" / file).parent_path());
  run.write("run/" + file, text);
  const auto before = contents(run.path());
  const TrainOptions options{.out = run.path() / "run", .resume = GENERATE(false, true), .overwrite = true};
  CHECK_THROWS_AS(train(tiny_config(), options), UserError);
  CHECK_THROWS_WITH(train(tiny_config(), options), Catch::Contains("is not a run directory"));
  CHECK(contents(run.path()) == before);
}

TEST_CASE("a pipe in the place of a file of the run is refused, and nobody waits for its other end") {
  const TempRun run;
  const fs::path out = train(tiny_config({"training.max_steps=1"}), {.out = run.path() / "run"});
  const fs::path file = out / GENERATE("config.json", "metrics.jsonl", "log.txt", "classes.json");
  fs::remove(file);
  REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  const bool resume = GENERATE(false, true);
  CHECK_THROWS_WITH(train(tiny_config({"training.max_steps=2"}), {.out = out, .resume = resume, .overwrite = !resume}),
                    Catch::Contains(file.string() + " is a pipe, and a run keeps a file there"));
}

TEST_CASE("a link in the place of a file of the run is refused, and what it leads to stays as it is") {
  const TempRun run;
  const fs::path out = train(tiny_config({"training.max_steps=1"}), {.out = run.path() / "run"});
  const fs::path file = out / GENERATE("config.json", "metrics.jsonl", "log.txt", "classes.json");
  const bool is_there = GENERATE(false, true), resume = GENERATE(false, true);
  const fs::path precious = run.path() / "precious";
  if (is_there && fs::exists(file)) fs::copy(file, precious);
  fs::remove(file);
  fs::create_symlink("../precious", file);
  const auto before = contents(run.path());
  CHECK_THROWS_WITH(train(tiny_config({"training.max_steps=2"}), {.out = out, .resume = resume, .overwrite = !resume}),
                    Catch::Contains(file.string() + " is a link, and a run writes a file there"));
  CHECK(contents(run.path()) == before);
}

TEST_CASE("a config that somebody has written into the output folder is not replaced") {
  const TempRun run;
  fs::create_directories(run.path() / "run");
  run.write("run/config.json",
            R"({"model": {"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 4}]},
    "data": {"type": "synthetic", "height": 8, "width": 8, "channels": 1, "classes": 4, "train_samples": 100,
             "test_samples": 30},
    "training": {"epochs": 3, "batch_per_worker": 4}, "optimizer": {"type": "sgd"},
    "learning_rate": {"type": "constant", "base": 0.05}})");
  run.write("run/log.txt", "mine");
  const auto before = contents(run.path());
  const TrainOptions options{.out = run.path() / "run", .overwrite = GENERATE(false, true)};
  CHECK_THROWS_WITH(train(tiny_config(), options), Catch::Contains("that no run of this dgc has written"));
  CHECK(contents(run.path()) == before);
}

TEST_CASE("where shards are summed, the transport is part of the result and cannot be changed") {
  const TempRun run;
  const auto resume = [&](const std::string& transport) {
    train(tiny_config({"training.max_steps=3", "exchange.algorithm=split_reduce", "exchange.transport=" + transport}),
          {.out = run.path() / "run", .resume = true});
  };
  resume("auto");
  CHECK_THROWS_WITH(resume("dense"), Catch::Contains("exchange.transport"));
  CHECK_NOTHROW(resume("auto"));
}

TEST_CASE("a fresh run refuses a directory that holds one, and leaves it as it was") {
  const Config config = tiny_config({"training.max_steps=3"});
  const TempRun run;
  train(config, {.out = run.path() / "run"});
  const auto before = contents(run.path());
  CHECK_THROWS_AS(train(config, {.out = run.path() / "run"}), UserError);
  CHECK_THROWS_WITH(train(config, {.out = run.path() / "run"}), Catch::Contains("already holds a run"));
  CHECK(contents(run.path()) == before);
}

TEST_CASE("a config that cannot be trained leaves no run directory behind") {
  const TempRun run;
  const std::string override =
      GENERATE("training.batch_per_worker=26", R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 3}])",
               R"(model.layers=[{"type": "conv2d", "out": 4, "kernel": 9}])");
  CHECK_THROWS_AS(train(tiny_config({override}), {.out = run.path() / "run"}), UserError);
  CHECK_FALSE(fs::exists(run.path() / "run"));
}

TEST_CASE("a run that is resumed where it is to end sends its residuals there") {
  const TempRun folder;
  const std::vector<std::string> overrides = {"optimizer.flush_at_end=true", "checkpoint.every_steps=1",
                                              "checkpoint.keep=100"};
  const std::string end = "training.max_steps=" + std::string(GENERATE("4", "6"));  // 6: an epoch
  const auto plus_end = [&] {
    std::vector<std::string> all = overrides;
    all.push_back(end);
    return tiny_config(all);
  };
  const fs::path whole = train(plus_end(), {.out = folder.path() / "whole"});
  const fs::path stopped = train(tiny_config(overrides), {.out = folder.path() / "stopped"});
  kill_after(stopped, end.back() - '0');
  train(plus_end(), {.out = stopped, .resume = true});
  CHECK(final_hash(stopped) == final_hash(whole));
  CHECK(rows_of_kind(stopped, "eval").back().number("test_loss") ==
        rows_of_kind(whole, "eval").back().number("test_loss"));
  CHECK(newest_checkpoint(stopped)->manifest().values.boolean("flushed") == true);
}

TEST_CASE("a run that is resumed behind max_steps ends where it is, as if max_steps had been there") {
  const TempRun folder;
  const auto config = [](int max_steps) {
    return tiny_config({"optimizer.flush_at_end=true", "checkpoint.every_steps=1", "checkpoint.keep=100", kPlateau,
                        fmt::format("training.max_steps={}", max_steps)});
  };
  const int killed = GENERATE(6, 8);  // 6: an epoch
  std::vector<fs::path> runs;
  for (const int max_steps : {killed, 5}) {
    const fs::path run = train(config(12), {.out = folder.path() / std::to_string(max_steps)});
    kill_after(run, killed);
    train(config(max_steps), {.out = run, .resume = true});
    runs.push_back(run);
  }
  CHECK(timeless_rows(runs[0]) == timeless_rows(runs[1]));
  CHECK(newest_checkpoint(runs[1])->manifest().values.boolean("flushed") == true);
  for (const char* key : {"position", "plateau_bad", "plateaus"}) {
    CHECK(newest_checkpoint(runs[1])->manifest().values.integer(key) ==
          newest_checkpoint(runs[0])->manifest().values.integer(key));
  }
}

TEST_CASE("a resumed run that is refused leaves the directory as it was") {
  const TempRun folder;
  const std::vector<std::string> overrides =
      every_step({R"(learning_rate={"type": "step", "base": 0.05, "milestones": [2], "factor": 0.1})"});
  const fs::path run = train(tiny_config(overrides), {.out = folder.path() / "run"});
  kill_after(run, 8);
  const auto before = contents(run);
  auto shorter = overrides;
  shorter.emplace_back("training.epochs=1");
  CHECK_THROWS_WITH(train(tiny_config(shorter), {.out = run, .resume = true}),
                    Catch::Contains("epoch 1.333333, and training.epochs is 1"));
  CHECK(contents(run) == before);
}

TEST_CASE("a flushed run cannot go on") {
  const TempRun run;
  train(tiny_config({"optimizer.flush_at_end=true", "training.max_steps=4"}), {.out = run.path() / "run"});
  CHECK_THROWS_WITH(train(tiny_config({"optimizer.flush_at_end=true"}), {.out = run.path() / "run", .resume = true}),
                    Catch::Contains("flush_at_end"));
}

TEST_CASE("a manifest whose checksum is right and whose numbers are not is refused by their names") {
  const auto [key, value] = GENERATE(table<std::string, std::string>({
      {"position", "-1"},
      {"position", "9223372036854775807"},
      {"position", "\"here\""},
      {"position", "1e300"},
      {"step", "9223372036854775807"},
      {"steps_per_epoch", "0"},
      {"steps_per_epoch", "9223372036854775807"},
      {"workers", "-4"},
      {"workers", "4611686018427387904"},
      {"good_steps", "-1"},
      {"good_steps", "4294967296"},
      {"loss_scale", "-1"},
      {"loss_scale", "1e300"},
      {"skipped_in_row", "-9223372036854775808"},
      {"plateau_bad", "-1"},
      {"plateaus", "9223372036854775807"},
  }));
  CAPTURE(key, value);
  const TempRun temp;
  const fs::path run = temp.path() / "run";
  train(tiny_config({"training.max_steps=4"}), {.out = run});
  const fs::path checkpoint = CheckpointStore(run).list().front();
  std::string text = read_file(checkpoint / "manifest.json");
  const size_t at = text.find("\"" + key + "\": ") + key.size() + 4;
  text.replace(at, text.find_first_of(",\n}", at) - at, value);
  write_file(checkpoint / "manifest.json", text);
  write_file(checkpoint / "manifest.xxh64", xxh64_hex(text));
  const std::string word = key == "steps_per_epoch" ? "epochs of " + value : key;
  std::string said;
  try {
    train(tiny_config(), {.out = run, .resume = true});
  } catch (const UserError& error) {
    said = error.what();
  }
  CHECK_THAT(said, Catch::Contains(word));
}

TEST_CASE("a run cannot be resumed with other plans") {
  const TempRun run, files;
  const std::string file = (files.path() / "plans.json").string();
  const std::string text = R"({"gpu": "", "cudnn": "", "convolutions": {}})";
  files.write("plans.json", text);
  const Config config = tiny_config({"conv_plans=" + file});
  on_ranks_of(config, [&](Rank& rank, Communicator&) { save_and_hash(rank, run); });
  const auto restore = [&] {
    on_ranks_of(config, [&](Rank& rank, Communicator&) { rank.restore(*newest_checkpoint(run.path())); });
  };
  CHECK_NOTHROW(restore());
  files.write("plans.json", text + " ");
  CHECK_THROWS_AS(restore(), UserError);
}

TEST_CASE("a resumed run's events begin behind its checkpoint") {
  const TempRun folder;
  const fs::path run = folder.path() / "run";
  train(tiny_config({"training.max_steps=9"}), {.out = run});
  const auto events = [&] {
    std::set<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      if (entry.path().filename().string().starts_with("events")) all.insert(entry.path());
    }
    return all;
  };
  const auto before = events();
  train(tiny_config(), {.out = run, .resume = true});
  for (const fs::path& file : events()) {
    if (before.contains(file)) continue;
    const std::string bytes = read_file(file);
    uint64_t first = 0;
    std::memcpy(&first, bytes.data(), sizeof(first));  // a record: 8 + 4 bytes, the event, 4 bytes
    const std::string second = bytes.substr(12 + first + 4 + 12, 13);
    CHECK(second.substr(9, 2) == "\x10\x0a");  // behind 9 bytes of time: step 10
  }
  CHECK(events().size() == before.size() + 1);
}

}  // namespace dgc
