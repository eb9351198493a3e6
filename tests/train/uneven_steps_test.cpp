#include "train/steps/uneven_steps.h"

#include <algorithm>
#include <atomic>
#include <catch.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/signal_this_process.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_text.h"
#include "train/ranks/interrupt.h"

// Rounds for which nobody waits for ever (exchange.wait).
namespace dgc {
namespace {

using namespace test;
using Strings = std::vector<std::string>;

// 25 steps an epoch: twelve rounds of two and one of one.
Strings long_epochs(const Strings& more) {
  Strings all = {"exchange.every_steps=2", "data.train_samples=400"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// What is saved behind these steps, but for the manifest, and every row of metrics on the way.
struct SavedRounds {
  std::vector<std::string> files;
  std::vector<double> losses;
  std::vector<bool> skipped;
  bool operator==(const SavedRounds&) const = default;
};

SavedRounds rounds_of(const Config& written, int64_t step, const std::optional<int32_t>& poisoned = {}) {
  SavedRounds saved;
  const TempRun run;
  const Datasets sets = open_sets(written);
  const Config config = task_of(written).completed(written, sets);
  std::unique_ptr<ImageDataset> images;
  std::optional<Poisoned> bad;
  if (poisoned) bad.emplace(*(images = make_images(config, Split::train)), *poisoned);
  const DataView good = sets.view(), view{bad ? static_cast<const Dataset&>(*bad) : good.train, good.test};
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, view, backend, communicator);
    const std::vector<StepMetrics> rows = steps_up_to(rank, step);
    const std::vector<std::string> files = save_and_hash(rank, run);
    rank.check_replicas();
    if (communicator.rank() != 0) return;
    saved.files = files;
    for (const StepMetrics& row : rows) {
      DGC_CHECK(row.absent_ranks.empty(), "nobody is late");
      saved.losses.push_back(row.loss);
      saved.skipped.push_back(row.skipped);
    }
  });
  return saved;
}

// Mail of which rank 2 seems to have left so many bytes unread.
class UnreadMail final : public Mail {
 public:
  UnreadMail(Mail& good, size_t unread) : good_(good), unread_(unread) {}
  void post(int to, Letter letter) override { good_.post(to, std::move(letter)); }
  std::optional<std::vector<std::byte>> take(int from) override { return good_.take(from); }
  size_t unsent(int to) override { return to == 2 ? unread_ : good_.unsent(to); }

 private:
  Mail& good_;
  size_t unread_;
};

// Mail of rank 0 that brings nothing of rank 1 while that rank alone is counted.
class HeldMail final : public Mail {
 public:
  explicit HeldMail(Mail& good) : good_(good) {}
  void post(int to, Letter letter) override {
    const RoundLetter said = read_letter(*letter);
    if (const auto* roll = std::get_if<RollCall>(&said)) held_ = roll->ranks == std::vector<int32_t>{1};
    if (const auto* delivery = std::get_if<Delivery>(&said); delivery != nullptr && !delivery->late) held_ = false;
    good_.post(to, std::move(letter));
  }
  std::optional<std::vector<std::byte>> take(int from) override { return held_ ? std::nullopt : good_.take(from); }
  size_t unsent(int to) override { return good_.unsent(to); }

 private:
  Mail& good_;
  bool held_ = false;
};

template <class OtherMail>
class WithMail final : public Communicator {
 public:
  template <class... Options>
  explicit WithMail(Communicator& good, Options... options) : good_(good), mail_(*good.mail(), options...) {}
  std::string name() const override { return good_.name(); }
  int rank() const override { return good_.rank(); }
  int size() const override { return good_.size(); }
  bool between_processes() const override { return good_.between_processes(); }
  bool recordable() const override { return good_.recordable(); }
  void all_gather(Device& device, const void* mine, void* all, size_t bytes) override {
    good_.all_gather(device, mine, all, bytes);
  }
  void gather_shards(Device& device, std::span<const float* const> workers, float* mine, size_t n) override {
    good_.gather_shards(device, workers, mine, n);
  }
  void barrier(Device& device) override { good_.barrier(device); }
  std::unique_ptr<Communicator> split(const Ranks& ranks) override { return good_.split(ranks); }
  Mail* mail() override { return &mail_; }
  void check() override { good_.check(); }
  void abort(const std::string& reason) noexcept override { good_.abort(reason); }

 private:
  Communicator& good_;
  OtherMail mail_;
};

}  // namespace

TEST_CASE("a run in which nobody is late has the bits of one in which all wait for all") {
  const Strings variant = GENERATE(
      Strings{}, Strings{R"(exchange.outer={"learning_rate": 0.75, "momentum": 0.5, "nesterov": true})"},
      Strings{"exchange.wire={\"values\": \"fp16\", \"indices\": \"rice\"}", "exchange.small_tensors=\"sparse\""});
  CAPTURE(variant);
  const auto config = [&](int ranks, int workers, const Strings& more) {
    Strings all = long_epochs(variant);
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(fmt::format("ranks={}", ranks));
    all.push_back(fmt::format("workers_per_rank={}", workers));
    return tiny_config(all);
  };
  const SavedRounds all_wait = rounds_of(config(1, 4, {}), 35);
  CHECK(all_wait.losses.size() == 18);
  CHECK(rounds_of(config(4, 1, {"exchange.wait=1000"}), 35) == all_wait);
  CHECK(rounds_of(config(2, 2, {"exchange.wait=1000"}), 35) == all_wait);
  CHECK(rounds_of(config(1, 4, {"exchange.wait=0"}), 35) == all_wait);  // one rank is never late
}

TEST_CASE("all who are there skip a round with a gradient that is not finite, as where all wait") {
  const Strings two = {"exchange.every_steps=2", "ranks=4", "workers_per_rank=1"};
  Strings waiting = two;
  waiting.push_back("exchange.wait=1000");
  // The first sample of the second worker in the third step, which begins the second round.
  std::vector<int32_t> samples;
  Sampler({100, 4, 4, 3}).indices(2, 1, samples);
  const SavedRounds truth = rounds_of(tiny_config(two), 6, samples[0]);
  CHECK(truth.skipped == std::vector<bool>{false, true, false});
  CHECK(rounds_of(tiny_config(waiting), 6, samples[0]).files == truth.files);
}

TEST_CASE("a rank that is late takes over what the others did, and all end with the same weights") {
  const Config config =
      tiny_config(long_epochs({"ranks=3", "workers_per_rank=1", "exchange.wait=0.01", "optimizer.warmup.epochs=1"}));
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  const Slow slow(*train);
  const int slow_rank = GENERATE(2, 0);
  CAPTURE(slow_rank);
  std::mutex one_at_a_time;
  std::map<int, std::vector<StepMetrics>> rows;
  std::set<std::string> weights;
  const int64_t epoch = 33;  // steps
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    const bool is_slow = communicator.rank() == slow_rank;
    Rank rank(config, {is_slow ? static_cast<const ImageDataset&>(slow) : *train, *test}, backend, communicator);
    DGC_CHECK(rank.steps_per_epoch() == epoch, "3 workers x 4 of 400 images");
    const std::vector<StepMetrics> own = steps_up_to(rank, 3 * epoch);
    DGC_CHECK(rank.step() == 3 * epoch, "a round ends with an epoch");
    rank.check_replicas();
    const EvalMetrics eval = rank.evaluate();
    DGC_CHECK(std::isfinite(eval.measures[kTestLoss]), "the weights are sound");
    const std::lock_guard lock(one_at_a_time);
    rows[communicator.rank()] = own;
    weights.insert(rank.weights_xxh64());
  });
  CHECK(weights.size() == 1);
  int64_t absences = 0;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      const StepMetrics& row = rows[rank].at(i);
      CHECK(row.step == rows[0][i].step);
      CHECK(row.loss == rows[0][i].loss);
      CHECK(row.absent_ranks == rows[0][i].absent_ranks);
    }
    const std::vector<int>& absent = rows[0][i].absent_ranks;
    absences += std::ranges::count(absent, slow_rank);
    if (rows[0][i].step % epoch != 0) continue;
    CHECK(absent.empty());  // all waited for all
  }
  CHECK(rows[0].size() == 3 * 17);
  CHECK(absences > 0);
}

TEST_CASE("of two ranks the other one goes on while a counted one sends nothing, and both end with the same weights") {
  const Config config =
      tiny_config(long_epochs({"ranks=2", "workers_per_rank=1", "exchange.wait=0.001", "exchange.every_steps=5"}));
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  const Slow slow(*train);
  std::mutex one_at_a_time;
  std::map<int, std::vector<StepMetrics>> rows;
  std::set<std::string> weights;
  const int64_t epoch = 50;  // steps
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    const bool is_slow = communicator.rank() == 0;
    WithMail<HeldMail> late(communicator);
    Rank rank(config, {is_slow ? static_cast<const ImageDataset&>(slow) : *train, *test}, backend,
              is_slow ? late : communicator);
    const std::vector<StepMetrics> own = steps_up_to(rank, epoch);
    DGC_CHECK(rank.step() == epoch, "a round ends with an epoch");
    rank.check_replicas();
    const std::lock_guard lock(one_at_a_time);
    rows[communicator.rank()] = own;
    weights.insert(rank.weights_xxh64());
  });
  CHECK(weights.size() == 1);
  REQUIRE(rows[0].size() == 10);
  int64_t empty = 0;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    CHECK(rows[0][i].step == rows[1].at(i).step);
    CHECK(rows[0][i].loss == rows[1][i].loss);
    CHECK(rows[0][i].absent_ranks == rows[1][i].absent_ranks);
    empty += rows[0][i].absent_ranks.size() == 2;
  }
  CHECK(empty > 0);
}

TEST_CASE("what late ranks have moved by is in the weights or in v, and nothing of it is lost") {
  // All samples are the same, and steps so short that the gradient hardly changes: a worker moves by as much in each.
  const auto config = [](const Strings& more) {
    Strings all = {R"(model={"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 4}]})",
                   R"(optimizer={"type": "dgc", "momentum": 0, "sparsity": 0.5, "warmup": {"epochs": 0}})",
                   R"(learning_rate={"type": "constant", "base": 1e-5})",
                   "exchange.every_steps=2",
                   "data.train_samples=2400",
                   "checkpoint.every_steps=40"};
    all.insert(all.end(), more.begin(), more.end());
    return tiny_config(all);
  };
  const Shape shape{4, 64};
  struct Moved {
    std::vector<double> by;  // start - weights + the sum of v
    int64_t own_steps = 0;   // of all workers
  };
  const auto train = [&](const Config& written, int workers, int slow_rank) {
    const TempRun run;
    const auto train_set = make_images(written, Split::train), test_set = make_images(written, Split::test);
    const Same same(*train_set);
    std::mutex one_at_a_time;
    Moved moved;
    std::vector<float> start;
    on_ranks(written, {}, [&](Backend& backend, Communicator& communicator) {
      Rank rank(written, {same, *test_set}, backend, communicator);
      if (communicator.rank() == 0) start = numbers(rank.weights(), 0);
      int64_t own = 0;
      while (rank.step() < 40) {
        if (communicator.rank() == slow_rank) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const int64_t before = rank.step();
        rank.train_step();
        while (rank.next_metrics()) {
        }
        own += rank.step() == before + 1 ? 1 : 0;  // the others' rounds are two steps long
      }
      save_and_hash(rank, run);
      const std::lock_guard lock(one_at_a_time);
      moved.own_steps += own * written.workers_per_rank;
    });
    const Checkpoint checkpoint = *newest_checkpoint(run.path());
    const std::vector<float> weights = loaded(checkpoint, "weights.safetensors", "1.weight", shape);
    for (size_t i = 0; i < weights.size(); ++i) moved.by.push_back(double{start[i]} - double{weights[i]});
    for (int worker = 0; worker < workers; ++worker) {
      const auto v = loaded(checkpoint, fmt::format("worker-{:04}.safetensors", worker), "v.1.weight", shape);
      for (size_t i = 0; i < v.size(); ++i) moved.by[i] += double{v[i]};
    }
    return moved;
  };
  const Moved all = train(config({"workers_per_rank=6"}), 6, -1);
  CHECK(all.own_steps == 6 * 40);
  const Moved late = train(config({"ranks=3", "workers_per_rank=2", "exchange.wait=0"}), 6, 2);
  CHECK(late.own_steps < all.own_steps);
  const double share = static_cast<double>(late.own_steps) / static_cast<double>(all.own_steps);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < all.by.size(); ++i) {
    worst = std::max(worst, std::fabs(late.by[i] - share * all.by[i]));
    largest = std::max(largest, std::fabs(all.by[i]));
  }
  CAPTURE(share, worst, largest);
  CHECK(worst < 0.005 * largest);  // a delivery of one rank is 1.7 % of it
}

TEST_CASE("all wait for a rank that has left too much unread, which is more with a large model") {
  constexpr size_t kBound = size_t{16} << 20;
  const auto [hidden, unread, all_wait] = GENERATE_COPY(table<int, size_t, bool>(
      {{1, kBound, false}, {1, kBound + 1, true}, {33'000, kBound + 1, false}}));  // 9 MB of weights
  CAPTURE(hidden, unread);
  const std::string model =
      fmt::format(R"(model={{"type": "layers", "layers": [{{"type": "flatten"}}, {{"type": "linear", "out": {}}},
                                                          {{"type": "linear", "out": 4}}]}})",
                  hidden);
  const Config config =
      tiny_config({model, R"(optimizer={"type": "dgc", "momentum": 0, "sparsity": 0.98, "warmup": {"epochs": 0}})",
                   "ranks=3", "workers_per_rank=1", "exchange.every_steps=2", "exchange.wait=0"});
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  std::atomic<int64_t> front = 0;  // steps of rank 0
  int64_t rows = 0, absences = 0;
  // Rank 2 begins when the others have ended a round without it. Where they may not, it gives them time to go wrong.
  const auto most = all_wait ? std::chrono::milliseconds(200) : std::chrono::milliseconds(60'000);
  on_ranks(config, {}, [&, unread = unread](Backend& backend, Communicator& communicator) {
    WithMail<UnreadMail> crowded(communicator, unread);
    Rank rank(config, {*train_set, *test_set}, backend, crowded);
    const auto end = std::chrono::steady_clock::now() + most;
    while (communicator.rank() == 2 && front < 2 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    while (rank.step() < rank.steps_per_epoch()) {
      for (const StepMetrics& row : steps_up_to(rank, rank.step() + 1)) {
        if (communicator.rank() != 0) continue;
        ++rows;
        absences += std::ranges::count(row.absent_ranks, 2);
      }
      if (communicator.rank() == 0) front = rank.step();
    }
  });
  CHECK(rows == 4);
  CHECK((absences == 0) == all_wait);
}

TEST_CASE("a row's loss is that of the steps in it, also where a late rank's round had more steps than the others'") {
  // All samples are the same and the weights stay as they are, so each step of each worker has the same loss.
  const Config config =
      tiny_config({R"(model={"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 4}]})",
                   R"(optimizer={"type": "dgc", "momentum": 0, "sparsity": 0.5, "warmup": {"epochs": 0}})",
                   R"(learning_rate={"type": "constant", "base": 1e-30})", "exchange.every_steps=4", "exchange.wait=0",
                   "ranks=4", "workers_per_rank=1", "training.epochs=20"});
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  const Same same(*train_set);
  std::vector<StepMetrics> rows;
  std::atomic<int64_t> front = 0;  // steps of rank 0
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {same, *test_set}, backend, communicator);
    while (rank.step() < 20 * rank.steps_per_epoch()) {
      // Rank 2 lets rank 0 go ahead, but not for ever, as that one may be waiting for it.
      for (int i = 0; communicator.rank() == 2 && i < 10 && front < rank.step() + 2; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      rank.train_step();
      while (const auto row = rank.next_metrics()) {
        if (communicator.rank() == 0) rows.push_back(*row);
      }
      if (communicator.rank() == 0) front = rank.step();
    }
  });
  REQUIRE(rows.size() > 20);
  CHECK(std::ranges::any_of(rows, [](const StepMetrics& row) { return !row.absent_ranks.empty(); }));
  for (const StepMetrics& row : rows) {
    CAPTURE(row.step, row.local_steps, row.present);
    CHECK(row.loss == Approx(rows[0].loss).epsilon(1e-5));
  }
}

TEST_CASE("a text's streams begin again behind words that a late rank has left out") {
  // Each window has the same three words and the weights stay as they are, so a state tells how many windows there have
  // been since the streams began.
  const TinyText text;
  for (const std::string name : {"train.txt", "valid.txt", "test.txt"}) {
    std::string sentences;
    for (int i = 0; i < 8 * 80; ++i) sentences += "w1 w2\n";
    text.write(name, sentences);
  }
  const auto config = [&](const Strings& more) {
    Strings all = {"model.dropout=0", "learning_rate.base=1e-30", "training.epochs=1"};
    all.insert(all.end(), more.begin(), more.end());
    return text.config(all);
  };
  const auto state_of = [](const TempRun& run, int worker) {
    return loaded(*newest_checkpoint(run.path()), fmt::format("worker-{:04}.safetensors", worker), "state.rnn.c_l0",
                  {2, 6});
  };
  std::vector<std::vector<float>> after_windows = {std::vector<float>(12)};  // zeros
  on_ranks_of(config({"ranks=1"}), [&](Rank& rank, Communicator&) {
    const TempRun run;
    while (rank.step() < 20) {
      make_steps(rank, 1);
      save_and_hash(rank, run);
      after_windows.push_back(state_of(run, 0));
    }
  });

  // Up to step 40 rank 3 lets the others go ahead, and from then on they let it catch up. Neither waits for ever, as
  // the others may be waiting for what it still has to do.
  // Where they do not let it, it comes to a checkpoint right behind what it has left out.
  constexpr int64_t kMeeting = 60;
  const bool catches_up = GENERATE(true, false);
  const int64_t uneven = catches_up ? 40 : kMeeting;
  const auto wait_a_little = [](const auto& condition) {
    for (int i = 0; i < 50 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const Config late = config({"ranks=4", "workers_per_rank=1", "exchange.every_steps=2", "exchange.wait=0",
                              fmt::format("checkpoint.every_steps={}", kMeeting)});
  const TempRun run;
  int64_t windows = 0, gaps = 0;  // of rank 3: windows since its last gap
  const auto train_unevenly = [&] {
    std::atomic<int64_t> front = 0, back = 0;  // steps of ranks 0 and 3
    windows = gaps = 0;
    on_ranks_of(late, [&](Rank& rank, Communicator& communicator) {
      const int me = communicator.rank();
      while (rank.step() < kMeeting) {
        if (me == 3 && rank.step() < uneven) wait_a_little([&] { return front >= rank.step() + 2; });
        if (me != 3 && rank.step() >= uneven) wait_a_little([&] { return back >= rank.step(); });
        const int64_t before = rank.step();
        rank.train_step();
        while (rank.next_metrics()) {
        }
        if (me == 0) front = rank.step();
        if (me != 3) continue;
        back = rank.step();
        const bool own = rank.step() == before + 1;  // the others' rounds are two steps long
        windows = own ? windows + 1 : 0;
        gaps += own ? 0 : 1;
      }
      save_and_hash(rank, run);
    });
  };
  // Rank 3 may still be late when all meet.
  const auto told = [&] { return gaps > 0 && windows <= 20 && (windows > 0) == catches_up; };
  for (int attempt = 0; attempt < 20 && !told(); ++attempt) train_unevenly();
  CAPTURE(windows, gaps);
  REQUIRE(told());
  CHECK(state_of(run, 3) == after_windows[static_cast<size_t>(windows)]);
}

TEST_CASE("a signal stops all ranks behind the same exchange, however late some are, and the run goes on from there") {
  const Config config = tiny_config(long_epochs({"ranks=4", "workers_per_rank=1", "exchange.wait=0"}));
  const TempRun run;
  std::mutex one_at_a_time;
  std::set<int64_t> stopped_at;
  {
    const InterruptGuard guard;
    on_ranks_of(config, [&](Rank& rank, Communicator& communicator) {
      bool raises = communicator.rank() == 3;
      while (!rank.asked_to_stop()) {
        rank.train_step();
        while (rank.next_metrics()) {
        }
        if (raises && rank.step() >= 9) {
          signal_this_process(SIGTERM);
          raises = false;
        }
      }
      DGC_CHECK(rank.met() > 0, "all ranks stop together");
      save_and_hash(rank, run);
      const std::lock_guard lock(one_at_a_time);
      stopped_at.insert(rank.step());
    });
  }
  REQUIRE(stopped_at.size() == 1);
  const InterruptGuard forgets;  // the signal, as every guard does when it begins
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    rank.restore(*newest_checkpoint(run.path()));
    DGC_CHECK(rank.step() == *stopped_at.begin(), "the run goes on where it stopped");
    steps_up_to(rank, 50);
    rank.check_replicas();
  });
}

TEST_CASE("checkpoints between epochs and the flush at the end have all ranks, and a killed run goes on") {
  const Strings settings = long_epochs({"ranks=4", "workers_per_rank=1", "exchange.wait=0", "checkpoint.every_steps=7",
                                        "checkpoint.keep=100", "optimizer.flush_at_end=true"});
  const TempRun run;
  const auto out = run.path() / "run";
  train(tiny_config(settings), {.out = out});
  std::vector<int64_t> saved;
  for (const auto& checkpoint : CheckpointStore(out).list()) saved.push_back(Checkpoint(checkpoint).manifest().step);
  std::ranges::sort(saved);
  CHECK(saved == std::vector<int64_t>{8, 14, 22, 25, 29, 35, 43, 49, 50, 56, 64, 70, 75});
  kill_after(out, 29);
  train(tiny_config(settings), {.out = out, .resume = true});
  CHECK(metrics_of(out).back().text("kind") == "final");
  CHECK_THAT(run.read("run/log.txt"), !Catch::Contains("there is no row"));
}

}  // namespace dgc
