#include "train/rank.h"

#include <atomic>
#include <catch.hpp>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "data/images/image_dataset.h"
#include "dist/peer_failed.h"
#include "run/file_io.h"
#include "run/log.h"
#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tools/bench/phases.h"
#include "train/ranks/on_ranks.h"

// Steps without a run directory around them.
namespace dgc {
namespace {

using test::AlteredImages, test::numbers, test::on_ranks_of, test::set_number, test::step;
using test::Poisoned;
using test::TempRun;
using test::tiny_config;

struct Outcome {
  std::string weights;
  double test_loss = 0, loss = 0, grad_norm = 0;
  int64_t sent_bytes = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome after(const Config& config, int steps) {
  Outcome outcome;
  on_ranks_of(config, [&](Rank& rank, Communicator& communicator) {
    StepMetrics last;
    for (int i = 0; i < steps; ++i) last = step(rank);
    rank.check_replicas();
    const EvalMetrics eval = rank.evaluate();
    if (communicator.rank() != 0) return;
    outcome = {rank.weights_xxh64(), eval.measures[kTestLoss], last.loss, last.grad_norm, last.sent_bytes};
  });
  return outcome;
}

void save(Rank& rank, const TempRun& run) {
  CheckpointStore store(run.path());
  const std::string problem = rank.save(store, 1);
  DGC_CHECK(problem.empty(), problem);
}

// The checksums of the newest checkpoint's files, but for the one that counts batches.
std::vector<std::string> state_hashes(Rank& rank, const TempRun& run) {
  save(rank, run);
  std::vector<std::string> hashes = {rank.weights_xxh64()};
  const auto checkpoint = newest_checkpoint(run.path());
  for (const ManifestFile& file : checkpoint->manifest().files) {
    if (file.name != "weights.safetensors") hashes.push_back(file.xxh64);
  }
  return hashes;
}

std::vector<float> loaded(const Checkpoint& checkpoint, const std::string& file, const std::string& tensor,
                          int64_t numel) {
  std::vector<float> values(static_cast<size_t>(numel));
  checkpoint.open(file).load(tensor, {values.data(), {numel}}, *make_cpu_device());
  return values;
}

// Images of which one cannot be read.
class OneUnreadable final : public AlteredImages {
 public:
  OneUnreadable(const ImageDataset& images, int32_t unreadable) : AlteredImages(images), unreadable_(unreadable) {}
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    if (i == unreadable_) {
      met_by_ = std::this_thread::get_id();
      throw_user_error("x.png: cannot open it");
    }
    if (met_by_.load() == std::this_thread::get_id()) {
      gone_on_ = true;
      gone_on_.notify_all();
    }
    return AlteredImages::read(i, draw, out);
  }
  // Until the thread that has met the image reads the batch behind it.
  void wait_until_gone_on() const { gone_on_.wait(false); }

 private:
  int32_t unreadable_;
  mutable std::atomic<std::thread::id> met_by_;
  mutable std::atomic<bool> gone_on_ = false;
};

// Images before each of which something is called, in the thread that reads it.
class WatchedImages final : public AlteredImages {
 public:
  WatchedImages(const ImageDataset& images, std::function<void()> before)
      : AlteredImages(images), before_(std::move(before)) {}
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    before_();
    return AlteredImages::read(i, draw, out);
  }

 private:
  std::function<void()> before_;
};

}  // namespace

TEST_CASE("workers give the same bits as threads and one after another") {
  const std::string variant = GENERATE(
      std::string(test::kDgc), std::string(test::kSgd),
      std::string(R"(optimizer={"type": "dgc", "momentum": 0.9, "sparsity": 0.9, "clip_norm": 0.5})"),
      std::string(R"(optimizer={"type": "sgd", "momentum": 0.9, "clip_norm": 0.5})"),
      std::string(R"(optimizer={"type": "dgc", "momentum": 0.9, "sparsity": 0.9, "momentum_correction": false})"),
      std::string(R"(optimizer={"type": "dgc", "momentum": 0.9, "sparsity": 0.9, "masked_momentum": "sent"})"));
  const std::string exchange =
      GENERATE(std::string("{}"), std::string(R"({"wire": {"values": "fp16"}, "small_tensors": "dense_fp16"})"),
               std::string(R"({"wire": {"values": "int8", "indices": "rice"}, "small_tensors": "sparse"})"),
               std::string(R"({"workers_per_group": 2})"),
               std::string(R"({"algorithm": "split_reduce", "transport": "sparse"})"));
  if (exchange != "{}" && variant.find("sgd") != std::string::npos) return;
  if (variant.find("sent") != std::string::npos && exchange.find("int8") == std::string::npos) return;
  CAPTURE(variant, exchange);
  const auto spread = [&](int ranks, int workers) {
    return after(tiny_config({variant, "exchange=" + exchange, fmt::format("ranks={}", ranks),
                              fmt::format("workers_per_rank={}", workers)}),
                 9);
  };
  const Outcome one = spread(1, 4);
  CHECK(one.test_loss > 0);
  CHECK(one == spread(4, 1));
  CHECK(one == spread(2, 2));
  CHECK(one.weights != spread(1, 2).weights);
}

TEST_CASE("a rank whose communicator connects fewer ranks than the config has is refused") {
  const Config config = tiny_config({"ranks=2"});
  const Datasets sets = open_sets(config);
  const auto backend = make_cpu_backend(1);
  const auto alone = make_single_communicator();
  CHECK_THROWS_WITH(Rank(config, sets.view(), *backend, *alone), Catch::Contains("share of the data"));
}

TEST_CASE("ranks share an evaluation out, and measure bit by bit what one alone does") {
  const auto measured = [](int ranks) {
    std::vector<Measures> all(static_cast<size_t>(ranks));
    on_ranks_of(tiny_config({fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", 6 / ranks),
                             "training.eval_batch=4"}),
                [&](Rank& rank, Communicator& communicator) {
                  step(rank);
                  all[static_cast<size_t>(communicator.rank())] = rank.evaluate().measures;
                });
    for (const Measures& one : all) CHECK(one.all() == all.front().all());
    return all.front().all();
  };
  const auto alone = measured(1);
  for (const int ranks : {2, 3, 6}) CHECK(measured(ranks) == alone);
}

TEST_CASE("an image that no evaluation can read ends the one of all ranks, by the rank whose share it is in") {
  const Config config = tiny_config({"ranks=3", "workers_per_rank=1", "training.eval_batch=4"});
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  const OneUnreadable with_gap(*test, 18);  // in batch 4
  std::vector<std::string> ends(3);
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train, with_gap}, backend, communicator);
    try {
      rank.evaluate();
    } catch (const std::exception& error) {
      ends[static_cast<size_t>(communicator.rank())] = error.what();
    }
  });
  CHECK(ends[1] == "x.png: cannot open it");
  CHECK(ends[0] == "rank 1: x.png: cannot open it");
  CHECK(ends[2] == ends[0]);
}

TEST_CASE("a rank that evaluates notices behind its next batch that another one is gone") {
  const Config config = tiny_config({"ranks=2", "workers_per_rank=1", "training.eval_batch=1"});
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  std::atomic<int64_t> reads = 0;
  const auto body = [&](Backend& backend, Communicator& communicator) {
    const auto is_alone = [&] {
      try {
        communicator.check();
        return false;
      } catch (const PeerFailed&) {
        return true;
      }
    };
    const WatchedImages watched(*test, [&] {
      if (communicator.rank() == 1) throw PeerFailed("lost");
      if (++reads == 1) return;
      while (!is_alone()) std::this_thread::yield();
    });
    Rank(config, {*train, watched}, backend, communicator).evaluate();
  };
  CHECK_THROWS_AS(on_ranks(config, {}, body), PeerFailed);
  CHECK(reads > 0);
  CHECK(reads < test->size() / 2);  // its share
}

TEST_CASE("the phases of a step are measured, and change nothing") {
  const Config config = tiny_config();
  const Outcome plain = after(config, 3);
  const Datasets sets = open_sets(config);
  dgc::on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, sets.view(), backend, communicator);
    Phases phases(backend);
    for (int i = 0; i < 3; ++i) step(rank);
    std::vector<std::string> names;
    for (const Phases::Phase& phase : phases.take()) {
      names.push_back(phase.name);
      DGC_CHECK(phase.milliseconds > 0, phase.name);
    }
    CHECK(names == std::vector<std::string>{"worker", "judge", "compress", "exchange", "apply"});
    CHECK(rank.weights_xxh64() == plain.weights);
  });
}

TEST_CASE("clipping, sending masked momentum and the values on the wire each change the weights") {
  const Outcome plain = after(tiny_config(), 4);
  CHECK(plain.weights != after(tiny_config({"optimizer.clip_norm=0.1"}), 4).weights);
  CHECK(plain.weights != after(tiny_config({"optimizer.masked_momentum=\"sent\""}), 4).weights);
  CHECK(plain.weights != after(tiny_config({"exchange.wire.values=\"fp16\""}), 4).weights);
  CHECK(plain.weights != after(tiny_config({"exchange.small_tensors=\"dense_fp16\""}), 4).weights);
  CHECK(plain.weights != after(tiny_config({"exchange.small_tensors=\"sparse\""}), 4).weights);
  CHECK(plain.weights == after(tiny_config({"exchange.wire.indices=\"rice\""}), 4).weights);
  CHECK(plain.weights != after(tiny_config({"seed=4"}), 4).weights);
  CHECK(plain == after(tiny_config(), 4));
}

TEST_CASE("every worker, and every step, has dropout masks of its own") {
  const double share = GENERATE(0.5, 0.0);
  const std::string model = fmt::format(
      R"(model={{"type": "layers", "layers": [{{"type": "flatten"}}, {{"type": "dropout", "p": {}}},
                                            {{"type": "linear", "out": 4}}]}})",
      share);
  const Config config =
      tiny_config({model, R"(optimizer={"type": "dgc", "momentum": 0, "sparsity": 0.98, "warmup": {"epochs": 0}})",
                   R"(learning_rate={"type": "constant", "base": 1e-30})", "workers_per_rank=2"});
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  const test::Same same(*train_set);
  const TempRun run;
  std::vector<StepMetrics> rows;
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {same, *test_set}, backend, communicator);
    rows = test::make_steps(rank, 1);
    save(rank, run);
    rows.push_back(step(rank));
  });
  const auto v_of = [&](int worker) {
    return test::loaded(*newest_checkpoint(run.path()), fmt::format("worker-{:04}.safetensors", worker), "v.2.weight",
                        {4, 64});
  };
  CHECK((v_of(0) == v_of(1)) == (share == 0));
  CHECK((rows[0].loss == rows[1].loss) == (share == 0));
}

TEST_CASE("a flush moves the weights by what was held back, at the rate of an exchange") {
  const auto [rounds, rate] = GENERATE(table<std::string, double>(
      {{"exchange.every_steps=1", 0.01},
       {R"(exchange={"every_steps": 4, "outer": {"learning_rate": 0.75, "momentum": 0, "nesterov": false}})", 0.75}}));
  CAPTURE(rounds);
  const Config config = tiny_config({rounds, R"(learning_rate={"type": "constant", "base": 0.01})"});
  const TempRun run;
  const Shape shape{4, 128};
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    test::make_steps(rank, 12);
    save(rank, run);
    const std::vector<float> before = test::numbers(rank.weights(), 3);
    rank.flush();
    const std::vector<float> after = test::numbers(rank.weights(), 3);
    std::vector<double> held(before.size());
    for (int worker = 0; worker < 4; ++worker) {
      const auto v = test::loaded(*newest_checkpoint(run.path()), fmt::format("worker-{:04}.safetensors", worker),
                                  "v.5.weight", shape);
      for (size_t i = 0; i < held.size(); ++i) held[i] += double{v[i]};
    }
    double moved = 0;
    for (size_t i = 0; i < held.size(); ++i) {
      REQUIRE(after[i] == Approx(before[i] - rate * held[i]).margin(1e-6));
      moved = std::max(moved, std::fabs(held[i] * rate));
    }
    CHECK(moved > 1e-4);
  });
}

TEST_CASE("a replica that differs is found, with its rank and tensor") {
  const Config config = tiny_config({"ranks=3", "workers_per_rank=1"});
  const auto broken = [&] {
    on_ranks_of(config, [](Rank& rank, Communicator& communicator) {
      step(rank);
      rank.check_replicas();
      const Arena& weights = rank.weights();
      if (communicator.rank() == 2) test::set_number(weights, 3, 1, std::nextafter(test::numbers(weights, 3)[1], 10.f));
      rank.check_replicas();
    });
  };
  CHECK_THROWS_AS(broken(), InternalError);
  CHECK_THROWS_WITH(broken(), Catch::Contains("step 1: the weights of rank 2 differ from rank 0's in 5.weight"));
}

TEST_CASE("a step with a non-finite gradient changes nothing on any worker") {
  const auto [ranks, workers] = GENERATE(table<int, int>({{1, 4}, {4, 1}}));
  const auto [optimizer, overlap] =
      GENERATE(table<std::string, std::string>({{test::kDgc, "off"}, {test::kDgc, "on"}, {test::kSgd, "off"}}));
  const Config config =
      tiny_config({optimizer, fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers),
                   "exchange.overlap=" + overlap, "exchange.bucket_mb=0.0001", "exchange.transport=sparse"});
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  // The first sample of the 3rd step's 2nd worker.
  std::vector<int32_t> samples;
  Sampler({train->size(), 4, 4, config.seed}).indices(2, 1, samples);
  const Poisoned poisoned(*train, samples[0]);

  const TempRun run;
  dgc::on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {poisoned, *test}, backend, communicator);
    std::vector<bool> skipped;
    std::vector<std::string> before, behind;
    for (int i = 0; i < 6; ++i) {
      if (i == 2) before = state_hashes(rank, run);
      const StepMetrics metrics = step(rank);
      if (i == 2) behind = state_hashes(rank, run);
      skipped.push_back(metrics.skipped);
      DGC_CHECK(std::isfinite(metrics.loss) == !metrics.skipped, "the loss of a skipped step");
    }
    const EvalMetrics eval = rank.evaluate();
    rank.check_replicas();
    if (communicator.rank() != 0) return;
    CHECK(skipped == std::vector<bool>{false, false, true, false, false, false});
    CHECK(before == behind);
    CHECK(std::isfinite(eval.measures[kTestLoss]));
    CHECK(rank.step() == 6);
  });
}

TEST_CASE("statistics of BatchNorm are averaged over the workers") {
  const auto [ranks, workers] = GENERATE(table<int, int>({{1, 4}, {2, 2}}));
  const TempRun run;
  on_ranks_of(tiny_config({fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers)}),
              [&](Rank& rank, Communicator&) {
                for (int i = 0; i < 3; ++i) step(rank);
                save(rank, run);
              });
  const auto checkpoint = newest_checkpoint(run.path());
  REQUIRE(checkpoint);
  for (const std::string name : {"1.running_mean", "1.running_var"}) {
    std::vector<float> sum(8);
    for (int worker = 0; worker < 4; ++worker) {
      const auto own = loaded(*checkpoint, fmt::format("worker-{:04}.safetensors", worker), name, 8);
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += own[c];
      CHECK(own != loaded(*checkpoint, "weights.safetensors", name, 8));
    }
    for (float& value : sum) value /= 4;
    CHECK(sum == loaded(*checkpoint, "weights.safetensors", name, 8));
  }
}

TEST_CASE("a checkpoint of other data or another model is refused") {
  const TempRun run;
  on_ranks_of(tiny_config(), [&](Rank& rank, Communicator&) { save(rank, run); });
  const auto restore = [&](const Config& config) {
    on_ranks_of(config, [&](Rank& rank, Communicator&) { rank.restore(*newest_checkpoint(run.path())); });
  };
  CHECK_NOTHROW(restore(tiny_config()));
  CHECK_NOTHROW(restore(tiny_config({"ranks=2", "workers_per_rank=2"})));
  const std::string workers = GENERATE("workers_per_rank=4", "workers_per_rank=2");
  CHECK_THROWS_WITH(restore(tiny_config({workers, "data.train_limit=64"})),
                    Catch::Contains("is of 4 workers and epochs of 6 steps, but the training set has 64 images"));
  const std::string other = R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 4}])";
  CHECK_THROWS_WITH(restore(tiny_config({other})),
                    Catch::Contains("weights.safetensors") && Catch::Contains("1.weight"));
}

TEST_CASE("a run that goes on with other samples says so") {
  const TempRun run;
  const Config config = tiny_config();
  const Datasets sets = open_sets(config);
  const auto on_set = [&](const std::string& xxh64, const std::function<void(Rank&)>& body) {
    DataView view = sets.view();
    view.train_xxh64 = xxh64;
    on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
      Rank rank(config, view, backend, communicator);
      body(rank);
    });
  };
  on_set("a", [&](Rank& rank) { save(rank, run); });
  const auto restore = [&](Rank& rank) { rank.restore(*newest_checkpoint(run.path())); };
  const auto said = [&](const std::string& xxh64) {
    {
      const RunLog log(run.path());
      on_set(xxh64, restore);
    }
    return read_file(run.path() / "log.txt");
  };
  CHECK_THAT(said("a"), !Catch::Contains("other data"));
  CHECK_THAT(said(""), !Catch::Contains("other data"));
  CHECK_THAT(said("b"),
             Catch::Contains("was trained on other data than the config names now; the run goes on with the config's"));
}

TEST_CASE("all ranks stop behind the same step before one of them lacks an image that its loader has met") {
  const int64_t micro_batches = GENERATE(1, 2);  // of a worker
  const Config config = tiny_config(
      {"ranks=2", "workers_per_rank=2", "data.threads=1", fmt::format("training.accumulate={}", micro_batches)});
  const Datasets sets = open_sets(config);
  const int64_t bad_step = GENERATE(2, 5);
  const int bad_rank = GENERATE(0, 1);
  std::vector<int32_t> samples;
  Sampler(sampling_of(config, *sets.train))
      .indices(bad_step, 2 * micro_batches * (bad_rank + 1) - 1, samples);  // the rank's last
  const OneUnreadable images(dynamic_cast<const ImageDataset&>(*sets.train), samples[0]);

  std::vector<int64_t> stopped(2);
  std::vector<bool> lacks(2), saved(2);
  const TempRun run;
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    const auto place = static_cast<size_t>(communicator.rank());
    Rank rank(config, {images, *sets.test}, backend, communicator);
    while (!rank.asked_to_stop()) {
      if (rank.step() + 1 == bad_step) images.wait_until_gone_on();
      step(rank);
    }
    stopped[place] = rank.step();
    lacks[place] = rank.lack() != nullptr;
    CheckpointStore store(run.path());
    saved[place] = rank.save(store, 1).empty();
  });
  CHECK(stopped == std::vector<int64_t>{bad_step, bad_step});
  CHECK(lacks == std::vector<bool>{bad_rank == 0, bad_rank == 1});
  CHECK(saved == std::vector<bool>{true, true});
}

TEST_CASE("a rank saves the checksum of the plans that it began with, though their file is gone or another one") {
  const TempRun run, files;
  std::filesystem::create_directories(run.path());
  std::filesystem::create_directories(files.path());
  const std::string file = (files.path() / "plans.json").string();
  const std::string text = R"({"gpu": "", "cudnn": "", "convolutions": {}})";
  write_file(file, text);
  const Config config = tiny_config({"conv_plans=" + file});
  const bool gone = GENERATE(true, false);
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    if (gone) {
      std::filesystem::remove(file);
    } else {
      write_file(file, text + " ");
    }
    step(rank);
    save(rank, run);
  });
  CHECK(newest_checkpoint(run.path())->manifest().values.text("conv_plans_xxh64") == xxh64_hex(text));
}

}  // namespace dgc
