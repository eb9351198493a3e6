#include <algorithm>
#include <catch.hpp>
#include <cmath>
#include <mutex>

#include "data/sampling.h"
#include "tasks/make.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "train/rank.h"
#include "train/ranks/on_ranks.h"

// Resuming with another number of workers.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

// Remembers what was read.
class Remembered final : public AlteredImages {
 public:
  using AlteredImages::AlteredImages;
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    {
      const std::lock_guard lock(mutex);
      all.push_back(static_cast<int32_t>(i));
    }
    return AlteredImages::read(i, draw, out);
  }
  mutable std::mutex mutex;
  mutable std::vector<int32_t> all;
};

const std::vector<std::pair<std::string, int64_t>> kTensors = {{"0.weight", 72}, {"5.weight", 512}, {"5.bias", 4}};

std::vector<std::string> spread(int ranks, int workers_per_rank) {
  return {fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers_per_rank)};
}

std::vector<float> values(const Checkpoint& checkpoint, int64_t worker, const std::string& tensor, int64_t numel) {
  std::vector<float> all(static_cast<size_t>(numel));
  const Shape shape = tensor.ends_with("0.weight")   ? Shape{8, 1, 3, 3}
                      : tensor.ends_with("5.weight") ? Shape{4, 128}
                                                     : Shape{numel};
  checkpoint.open(worker_file(worker)).load(tensor, {all.data(), shape}, *make_cpu_device());
  return all;
}

std::vector<double> sum_over_workers(const Checkpoint& checkpoint, const std::string& tensor, int64_t numel) {
  std::vector<double> sum(static_cast<size_t>(numel));
  for (int64_t worker = 0; worker < *checkpoint.manifest().values.integer("workers"); ++worker) {
    const auto own = values(checkpoint, worker, tensor, numel);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(own[i]);
  }
  return sum;
}

// Restores a run's newest checkpoint as other ranks would, and saves that as it is.
void restore_and_save(const Config& config, const fs::path& from, const fs::path& to) {
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train_set, *test_set}, backend, communicator);
    rank.restore(*newest_checkpoint(from));
    CheckpointStore store(to);
    const std::string problem = rank.save(store, 1);
    DGC_CHECK(problem.empty(), problem);
  });
}

std::vector<int64_t> steps_of(const fs::path& run, const std::string& kind) {
  std::vector<int64_t> steps;
  for (const Row& row : rows_of_kind(run, kind)) steps.push_back(*row.integer("step"));
  return steps;
}

}  // namespace

TEST_CASE("with another number of workers the sum of what is held back is kept") {
  const auto [ranks, workers_per_rank] = GENERATE(table<int, int>({{1, 1}, {1, 2}, {3, 1}, {5, 1}, {2, 4}}));
  const int workers = ranks * workers_per_rank;
  CAPTURE(ranks, workers_per_rank);
  const TempRun before, after;
  train(tiny_config({"training.max_steps=9"}), {.out = before.path() / "run"});
  restore_and_save(tiny_config(spread(ranks, workers_per_rank)), before.path() / "run", after.path());
  const Checkpoint was(*newest_checkpoint(before.path() / "run")), is(*newest_checkpoint(after.path()));
  REQUIRE(was.manifest().values.integer("workers") == 4);
  REQUIRE(is.manifest().values.integer("workers") == workers);
  CHECK(is.manifest().step == 9);
  for (const std::string state : {"u.", "v."}) {
    for (const auto& [name, numel] : kTensors) {
      CAPTURE(state, name);
      const auto old_sum = sum_over_workers(was, state + name, numel);
      const auto new_sum = sum_over_workers(is, state + name, numel);
      int wrong = 0, held_back = 0, uneven = 0;
      for (size_t i = 0; i < old_sum.size(); ++i) {
        // Every share is rounded once, by at most half a unit in its 24th bit; so is their sum.
        wrong += std::abs(new_sum[i] - old_sum[i]) > std::ldexp(std::abs(old_sum[i]), -24) ? 1 : 0;
        held_back += old_sum[i] != 0 ? 1 : 0;
      }
      for (int worker = 1; worker < workers; ++worker) {
        uneven += values(is, worker, state + name, numel) != values(is, 0, state + name, numel) ? 1 : 0;
      }
      CHECK(wrong == 0);
      CHECK(uneven == 0);
      if (name == "5.bias") CHECK(held_back == 0);  // it travels dense
      if (name != "5.bias") CHECK(held_back > numel / 2);
    }
  }
  for (const std::string name : {"1.running_mean", "1.running_var"}) {
    std::vector<float> mean(8);
    was.open("weights.safetensors").load(name, {mean.data(), {8}}, *make_cpu_device());
    for (int worker = 0; worker < workers; ++worker) CHECK(values(is, worker, name, 8) == mean);
  }
}

TEST_CASE("as many workers, spread over ranks in another way, go on in the same bits") {
  const TempRun temp;
  train(tiny_config(), {.out = temp.path() / "whole"});
  train(tiny_config({"training.max_steps=9"}), {.out = temp.path() / "moved"});
  train(tiny_config(spread(2, 2)), {.out = temp.path() / "moved", .resume = true});
  CHECK(timeless_rows(temp.path() / "moved").back() == timeless_rows(temp.path() / "whole").back());
}

TEST_CASE("groups, spread over ranks in another way, go on in the same bits, and with fewer keep what is held back") {
  const TempRun temp, after;
  const std::string group = "exchange.workers_per_group=2";
  train(tiny_config({group}), {.out = temp.path() / "whole"});
  train(tiny_config({group, "training.max_steps=9"}), {.out = temp.path() / "moved"});
  // Two groups become one.
  restore_and_save(tiny_config({group, "workers_per_rank=2"}), temp.path() / "moved", after.path());
  const Checkpoint was(*newest_checkpoint(temp.path() / "moved")), is(*newest_checkpoint(after.path()));
  for (const std::string state : {"u.", "v."}) {
    const auto first = values(was, 0, state + "5.weight", 512), second = values(was, 2, state + "5.weight", 512);
    const auto now = values(is, 0, state + "5.weight", 512);
    int wrong = 0, held_back = 0;
    for (size_t i = 0; i < now.size(); ++i) {
      const double sum = double{first[i]} + double{second[i]};
      wrong += now[i] != static_cast<float>(sum) ? 1 : 0;
      held_back += sum != 0 ? 1 : 0;
    }
    CHECK((wrong == 0 && held_back > 256));
    CHECK_THROWS(values(was, 1, state + "5.weight", 512));  // it is the group's, and in the file of its first worker
  }
  auto other = spread(4, 1);
  other.push_back(group);
  train(tiny_config(other), {.out = temp.path() / "moved", .resume = true});
  CHECK(timeless_rows(temp.path() / "moved").back() == timeless_rows(temp.path() / "whole").back());
}

TEST_CASE("training goes on at the same place in the data with another number of workers") {
  // 4 workers take 16 of 100 samples a step: 6 steps an epoch. After 9 steps 48 samples of epoch 2 are seen.
  struct Case {
    int64_t stop;
    int workers;
    int64_t last;                // step
    std::vector<int64_t> evals;  // steps, from the resumed run
    std::string said;
  };
  const Case c = GENERATE(
      // 2 workers: 12 steps an epoch, 6 of them done, 6 + 12 to go.
      Case{9, 2, 27, {15, 27}, "6 of 12 steps of epoch 2 count as done, and 0 samples come a second time"},
      // 8 workers: 3 steps an epoch, 1 done, for 16 of the 48 samples there is no whole step.
      Case{9, 8, 14, {11, 14}, "1 of 3 steps of epoch 2 count as done, and 16 samples come a second time"},
      // 1 worker: 25 steps an epoch. At the end of an epoch nothing is in between.
      Case{6, 1, 56, {31, 56}, "0 of 25 steps of epoch 2 count as done, and 0 samples come a second time"},
      // 80 samples of epoch 2 are seen; 7 workers take 28 at a time and leave the last 16 of an epoch out.
      Case{11, 7, 15, {12, 15}, "2 of 3 steps of epoch 2 count as done, and 24 samples come a second time"},
      // 10 workers take 40 at a time: 80 samples were two whole steps, but the last step of an epoch is always made.
      Case{11, 10, 14, {12, 14}, "1 of 2 steps of epoch 2 count as done, and 40 samples come a second time"});
  CAPTURE(c.stop, c.workers);
  const TempRun temp;
  const auto run = temp.path() / "run";
  train(tiny_config({fmt::format("training.max_steps={}", c.stop)}), {.out = run});
  const size_t evals_before = steps_of(run, "eval").size();
  const Config other =
      tiny_config({fmt::format("workers_per_rank={}", c.workers), "checkpoint.every_steps=1", "checkpoint.keep=100"});
  train(other, {.out = run, .resume = true});
  const auto steps = steps_of(run, "step");
  REQUIRE(steps.size() == static_cast<size_t>(c.last));
  for (size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == static_cast<int64_t>(i) + 1);
  CHECK(metrics_of(run).back().number("epoch") == 3.0);
  const auto evals = steps_of(run, "eval");
  CHECK(std::vector<int64_t>(evals.begin() + static_cast<std::ptrdiff_t>(evals_before), evals.end()) == c.evals);
  CHECK_THAT(
      read_file(run / "log.txt"),
      Catch::Contains("is of 4 workers, and this run has " + std::to_string(c.workers)) && Catch::Contains(c.said));

  // From there on it is a run like any other: stopped and resumed, it ends in the same bits.
  const auto truth = timeless_rows(run);
  for (const fs::path& checkpoint : CheckpointStore(run).list()) {
    if (Checkpoint(checkpoint).manifest().step > c.stop + 2) fs::remove_all(checkpoint);
  }
  train(other, {.out = run, .resume = true});
  CHECK(timeless_rows(run) == truth);
}

TEST_CASE("with another number of workers the next step reads the samples that are next") {
  const TempRun temp;
  train(tiny_config({"training.max_steps=9"}), {.out = temp.path() / "run"});
  const Config config = tiny_config({"workers_per_rank=2", "data.threads=1"});
  const Datasets sets = open_sets(config);
  const Remembered images(dynamic_cast<const ImageDataset&>(*sets.train));
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {images, *sets.test}, backend, communicator);
    rank.restore(*newest_checkpoint(temp.path() / "run"));
    REQUIRE(rank.position() == 12 + 6);
    step(rank);
  });
  const Sampler sampler(sampling_of(config, *sets.train));
  std::vector<int32_t> first, second;
  sampler.indices(18, 0, first);
  sampler.indices(18, 1, second);
  first.insert(first.end(), second.begin(), second.end());
  REQUIRE(images.all.size() >= first.size());
  CHECK(std::vector<int32_t>(images.all.begin(), images.all.begin() + 8) == first);
}

TEST_CASE("checkpoint.every_steps counts steps also where the position is another number") {
  const TempRun temp;
  const fs::path run = temp.path() / "run";
  train(tiny_config({"training.max_steps=9"}), {.out = run});
  train(tiny_config({"workers_per_rank=2", "checkpoint.every_steps=5", "checkpoint.keep=100"}),
        {.out = run, .resume = true});
  std::vector<int64_t> steps;
  for (const fs::path& checkpoint : CheckpointStore(run).list())
    steps.push_back(Checkpoint(checkpoint).manifest().step);
  std::ranges::sort(steps);
  std::erase_if(steps, [](int64_t step) { return step <= 9; });
  CHECK(steps == std::vector<int64_t>{10, 15, 20, 25, 27});
}

TEST_CASE("a manifest's epoch is that of the position") {
  const TempRun temp;
  const fs::path run = temp.path() / "run";
  train(tiny_config({"training.max_steps=9"}), {.out = run});
  train(tiny_config({"workers_per_rank=2"}), {.out = run, .resume = true});
  CHECK(newest_checkpoint(run)->manifest().epoch == 3);
}

TEST_CASE("other workers may have other threads") {
  const TempRun folder;
  on_ranks_of(tiny_config(), [&](Rank& rank, Communicator&) { CHECK(save_and_hash(rank, folder).size() > 1); });
  const auto restore = [&](const std::string& workers) {
    on_ranks_of(tiny_config({workers, "threads=2"}),
                [&](Rank& rank, Communicator&) { rank.restore(*newest_checkpoint(folder.path())); });
  };
  CHECK_THROWS_WITH(restore("workers_per_rank=4"), Catch::Contains("set threads to 1"));
  CHECK_NOTHROW(restore("workers_per_rank=2"));
}

}  // namespace dgc
