// Whole trainings on the fake GPU: the CPU's weights but for rounding, and the same bits with and without recordings.
#include <algorithm>
#include <catch.hpp>
#include <functional>

#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/fake_cuda/nccl_ranks.h"
#include "tests/fake_cuda/small_models.h"
#include "tests/fake_cuda/support.h"
#include "tests/fake_cuda/trained.h"
#include "tests/fake_cuda/weights.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"

using namespace dgc;
using namespace dgc::test;

namespace {

// The same on ranks that are threads with a GPU each, which NCCL connects. What a rank threw is in `outcome`.
struct Connected {
  std::vector<float> weights;
  std::vector<bool> skipped;  // for each step
  std::string outcome;
};

using AfterStep = std::function<void(int rank, int step, Rank&, Backend&)>;

std::vector<Connected> trained_by_nccl(Config config, const DataView& data, int ranks, int steps,
                                       const AfterStep& after_step) {
  config.ranks = ranks;
  std::vector<Connected> results(static_cast<size_t>(ranks));
  const auto outcomes = on_nccl_ranks(ranks, [&](int number, Backend& backend, Communicator& communicator) {
    Connected& result = results[static_cast<size_t>(number)];
    Rank rank(config, data, backend, communicator);
    const auto take = [&] {
      while (const auto metrics = rank.next_metrics()) result.skipped.push_back(metrics->skipped);
    };
    for (int i = 0; i < steps; ++i) {
      rank.train_step();
      take();
      communicator.check();
      after_step(number, i, rank, backend);
    }
    rank.finish_steps();
    take();
    rank.check_replicas();
    result.weights = weights_of(rank);
    communicator.barrier(*backend.device());
  });
  for (size_t i = 0; i < results.size(); ++i) results[i].outcome = outcomes[i];
  return results;
}

std::vector<Connected> trained_by_nccl(
    const Config& config, int ranks, int steps, const AfterStep& after_step = [](int, int, Rank&, Backend&) {}) {
  const Datasets sets = open_sets(config);
  return trained_by_nccl(task_of(config).completed(config, sets), sets.view(), ranks, steps, after_step);
}

const std::string kTwoWorkers = "workers_per_rank=2";

// make(device) gives a config for "device=cuda:0" or "device=cpu". Returns how many recordings were replayed.
size_t check_training(const std::function<Config(const std::string&)>& make, const fake_cuda::Options& options = {},
                      int steps = 7) {
  const Gpu gpu(options);
  const size_t launched = fake_cuda::executed("cudaGraphLaunch");
  const Trained recorded = trained(make("device=cuda:0"), steps);
  const size_t replayed = fake_cuda::executed("cudaGraphLaunch") - launched;
  CHECK(replayed > 0);
  const Trained plain = trained(make("device=cuda:0"), steps, false);
  CHECK(recorded.weights == plain.weights);
  CHECK(recorded.losses == plain.losses);
  const Trained truth = trained(make("device=cpu"), steps);
  CHECK(apart(recorded.weights, truth.weights) < 2e-4);
  return replayed;
}

}  // namespace

TEST_CASE("layers trained on the GPU end in the CPU's weights but for rounding, and recording changes no bit") {
  const std::string optimizer = GENERATE(kSgd, kDgc);
  const std::string also = GENERATE("exchange.overlap=\"off\"", "exchange.overlap=\"on\"", "optimizer.clip_norm=0.25",
                                    "exchange.every_steps=2", "training.accumulate=2", "workers_at_once=2");
  if (also == "exchange.overlap=\"on\"" && optimizer == kSgd) return;
  CAPTURE(optimizer, also);
  check_training([&](const std::string& device) { return tiny_config({optimizer, kTwoWorkers, device, also}); });
}

TEST_CASE("a ResNet trained on the GPU ends in the CPU's weights but for rounding, and recording changes no bit") {
  const std::string at_once = GENERATE("workers_at_once=1", "workers_at_once=2");
  check_training([&](const std::string& device) {
    return tiny_config({kDgc, kTwoWorkers, device, kSmallResNet, at_once});
  });
}

TEST_CASE("an LSTM trained on the GPU ends in the CPU's weights but for rounding, and recording changes no bit") {
  const TinyText text;
  const auto [optimizer, every] = GENERATE(table<std::string, int>({{kSgd, 1}, {kDgc, 1}, {kDgc, 2}}));
  const std::vector<std::string> both = {optimizer, fmt::format("exchange.every_steps={}", every)};
  check_training([&](const std::string& device) { return text.config({both[0], both[1], kTwoWorkers, device}); });
}

// The passes of each length are a recording of their own, so it takes more steps until some are replayed.
TEST_CASE("Deep Speech trained on the GPU ends in the CPU's weights but for rounding, and recording changes no bit") {
  const TinySpeech speech;
  const std::string also =
      GENERATE("workers_at_once=1", "workers_at_once=2", "exchange.overlap=\"on\"", "exchange.every_steps=2");
  CAPTURE(also);
  constexpr int kSteps = 24;
  const size_t replayed = check_training(
      [&](const std::string& device) {
        return speech.config({kDgc, kTwoWorkers, device, also});
      },
      {}, kSteps);
  if (also != "exchange.overlap=\"on\"") CHECK(replayed > kSteps);  // so not exchanges alone
}

TEST_CASE("where the exchange cannot be recorded, each worker's passes are") {
  check_training([](const std::string& device) { return tiny_config({kDgc, kTwoWorkers, "ranks=2", device}); });
}

TEST_CASE("workers that compute at the same time on the GPU end in the bits of workers one after another") {
  const TinyText text;
  const Gpu gpu({.seed = GENERATE(range<uint64_t>(1, 5)), .multiprocessors = 1});
  const bool is_text = GENERATE(false, true);
  const auto of = [&](int at_once) {
    const std::vector<std::string> all = {kDgc, "workers_per_rank=3", "device=cuda:0",
                                          fmt::format("workers_at_once={}", at_once)};
    return trained(is_text ? text.config(all) : tiny_config(all), 6);
  };
  const Trained truth = of(1), found = of(GENERATE(2, 3));
  CHECK(found.weights == truth.weights);
  CHECK(found.losses == truth.losses);
}

TEST_CASE("a rank's own steps go on without a recording where the GPU has no memory for one") {
  const Gpu gpu;
  const Config config = tiny_config({kDgc, kTwoWorkers, "ranks=2", "device=cuda:0", "exchange.every_steps=4"});
  fake_cuda::fail(0);  // counts calls from here
  const Trained truth = trained(config, 8);
  int failed = 0;
  for (const auto& [site, times] : fake_cuda::call_sites()) {
    if (std::string(site.call) != "cudaGraphInstantiate") continue;
    fake_cuda::fail_at(site, 1);
    CHECK(trained(config, 8).weights == truth.weights);
    failed += fake_cuda::failed_call() == "cudaGraphInstantiate";
  }
  CHECK(failed > 0);
}

TEST_CASE("as many workers compute at the same time as a quarter of the GPU's free memory has room for") {
  const auto [gib, also, expected] = GENERATE(table<size_t, std::string, int64_t>({{3, "workers_at_once=0", 1},
                                                                                   {5, "workers_at_once=0", 2},
                                                                                   {16, "workers_at_once=0", 3},
                                                                                   {3, "workers_at_once=2", 2},
                                                                                   {16, "exchange.overlap=on", 1},
                                                                                   {16, "device=cpu", 1}}));
  CAPTURE(gib, also);
  const Gpu gpu({.memory = gib << 30});
  const Config config = tiny_config({kDgc, "workers_per_rank=3", "device=cuda:0", also});
  const Datasets sets = open_sets(config);
  on_ranks(config, {}, [&, at_once = expected](Backend& backend, Communicator& communicator) {
    CHECK(Rank(config, sets.view(), backend, communicator).workers_at_once() == at_once);
  });
}

TEST_CASE("a training whose convolutions cuDNN cannot all do ends in the CPU's weights but for rounding") {
  fake_cuda::Options options{.multiprocessors = 1};  // fewer blocks take less time
  const int pass = GENERATE(range(0, 3));
  auto& known = pass == 0 ? options.forward : pass == 1 ? options.backward_data : options.backward_filter;
  known = fake_cuda::Algorithms::varying;
  CAPTURE(pass);
  constexpr int kSteps = 4;  // the third is recorded
  const std::vector<std::string> all = {kSgd, "workers_per_rank=1"};
  const auto images = [&](const std::string& model) {
    check_training(
        [&](const std::string& device) {
          return tiny_config({all[0], all[1], device, model});
        },
        options, kSteps);
  };
  SECTION("ResNet") { images(kSmallResNet); }
  SECTION("AlexNet, with groups") { images(kLikeAlexNet); }
  SECTION("Deep Speech, with filters as large as the paper's") {
    const TinySpeech speech;
    const std::string model =
        R"(model={"type": "deep_speech", "layers": 1, "hidden": 8,
                  "convolutions": {"channels": [2, 2], "kernel_frames": [3, 11], "kernel_frequencies": [1, 41],
                                   "stride_frames": [2, 1], "stride_frequencies": [1, 1]}})";
    check_training(
        [&](const std::string& device) {
          return speech.config({all[0], all[1], device, model});
        },
        options, kSteps);
  }
}

TEST_CASE("a training in 16 bits is recorded without changing a bit, and its loss is near that in fp32") {
  const TinyText text;
  const TinySpeech speech;
  const std::string precision = GENERATE("precision=bf16", "precision=fp16");
  const auto kind = GENERATE(range(0, 4));
  CAPTURE(precision, kind);
  const auto make = [&](const std::string& device, const std::string& with) {
    std::vector<std::string> all{kDgc, "workers_per_rank=2", "device=" + device, with};
    if (kind == 1) all.push_back(kSmallResNet);
    if (kind == 2) return text.config(all);
    if (kind == 3) return speech.config(all);
    return tiny_config(all);
  };
  constexpr int kSteps = 5;
  const Gpu gpu;
  const Trained recorded = trained(make("cuda:0", precision), kSteps);
  const Trained plain = trained(make("cuda:0", precision), kSteps, false);
  CHECK(recorded.weights == plain.weights);
  CHECK(recorded.losses == plain.losses);
  const Trained truth = trained(make("cpu", "precision=fp32"), kSteps);
  REQUIRE(recorded.losses.size() == truth.losses.size());
  CHECK(recorded.losses[0] == Approx(truth.losses[0]).epsilon(0.02));
}

TEST_CASE("ranks that NCCL connects end in the weights of one rank with all their workers, bit for bit") {
  const std::string optimizer = GENERATE(kSgd, kDgc);
  const std::string overlap = GENERATE("off", "on");
  if (overlap == "on" && optimizer == kSgd) return;
  CAPTURE(optimizer, overlap);
  const Gpu gpu({.devices = 2});
  const auto config = [&](const std::string& workers) {
    return tiny_config(
        {optimizer, "device=cuda:0", "workers_per_rank=" + workers, "exchange.overlap=\"" + overlap + "\""});
  };
  constexpr int kSteps = 8;
  const Trained truth = trained(config("2"), kSteps);
  const size_t launched = fake_cuda::executed("cudaGraphLaunch");
  const std::vector<Connected> ranks = trained_by_nccl(config("1"), 2, kSteps);
  const size_t replayed = fake_cuda::executed("cudaGraphLaunch") - launched;
  CHECK(replayed > 0);
  for (const Connected& rank : ranks) {
    CHECK(rank.outcome.empty());
    CHECK(rank.weights == truth.weights);
  }
}

TEST_CASE("four ranks that NCCL connects train to the weights of one rank with all their workers, bit for bit") {
  const std::string coded = R"("wire": {"values": "int8", "indices": "rice"})";
  const std::string exchange = GENERATE_COPY(
      as<std::string>(), R"({"overlap": "off"})", R"({"algorithm": "split_reduce"})", R"({"workers_per_group": 2})",
      R"({"overlap": "on", "bucket_mb": 0.001})", "{" + coded + R"(, "small_tensors": "dense_fp16"})",
      "{" + coded + R"(, "small_tensors": "sparse"})", "{" + coded + R"(, "every_steps": 2})");
  CAPTURE(exchange);
  const Gpu gpu({.devices = 4, .multiprocessors = 1});
  const auto config = [&](const std::string& workers) {
    return tiny_config({kDgc, "device=cuda:0", "workers_per_rank=" + workers, "exchange=" + exchange});
  };
  constexpr int kSteps = 5;
  const Trained truth = trained(config("4"), kSteps);
  const std::vector<Connected> ranks = trained_by_nccl(config("1"), 4, kSteps);
  for (const Connected& rank : ranks) {
    CHECK(rank.outcome.empty());
    CHECK(rank.weights == truth.weights);
  }
}

// Invariant 3.
TEST_CASE("ranks that NCCL connects notice a replica that differs") {
  const Gpu gpu({.devices = 2, .multiprocessors = 1});
  constexpr int kSteps = 4;
  const AfterStep damage = [](int number, int step, Rank& rank, Backend&) {
    if (number == 1 && step == kSteps - 1) set_number(rank.weights(), 3, 1, 100.f);
  };
  const std::vector<Connected> ranks =
      trained_by_nccl(tiny_config({kDgc, "device=cuda:0", "workers_per_rank=1"}), 2, kSteps, damage);
  // The first rank to notice ends the others, also one that is about to.
  const std::string difference = "the weights of rank 1 differ from rank 0's in 5.weight";
  CHECK(std::ranges::any_of(ranks,
                            [&](const Connected& rank) { return rank.outcome.find(difference) != std::string::npos; }));
  for (const Connected& rank : ranks) {
    CHECK_THAT(rank.outcome, Catch::Contains(difference) || Catch::Equals("another rank has failed"));
  }
}

// Invariant 7.
TEST_CASE("ranks that NCCL connects skip a step together where the gradient of one is not finite") {
  const std::string exchange =
      GENERATE(as<std::string>(), R"({"overlap": "off"})", R"({"overlap": "on", "bucket_mb": 0.001})",
               R"({"algorithm": "split_reduce"})", R"({"wire": {"values": "int8", "indices": "rice"}})");
  CAPTURE(exchange);
  const Gpu gpu({.devices = 2, .multiprocessors = 1});
  const auto config = [&](int workers) {
    return tiny_config({kDgc, "device=cuda:0", fmt::format("workers_per_rank={}", workers), "exchange=" + exchange,
                        R"(model={"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 4}]})"});
  };
  constexpr int kSteps = 6, kBad = 4;  // by then steps are replayed
  const auto train = make_images(config(1), Split::train), test = make_images(config(1), Split::test);
  std::vector<int32_t> samples;
  Sampler({train->size(), 2, 4, config(1).seed}).indices(kBad, 1, samples);
  const Poisoned poisoned(*train, samples[0]);
  const auto trained = [&](int ranks) {
    return trained_by_nccl(config(2 / ranks), {poisoned, *test}, ranks, kSteps, [](int, int, Rank&, Backend&) {});
  };
  const Connected alone = trained(1).front();
  CHECK(alone.outcome.empty());
  CHECK(alone.skipped == std::vector<bool>{false, false, false, false, true, false});
  for (const Connected& rank : trained(2)) {
    CHECK(rank.outcome.empty());
    CHECK(rank.skipped == alone.skipped);
    CHECK(rank.weights == alone.weights);
  }
}

TEST_CASE("ranks that NCCL connects take recorded steps of which nothing is compressed") {
  const std::string exchange = GENERATE(R"({"overlap": "off"})", R"({"wire": {"values": "int8", "indices": "rice"}})");
  CAPTURE(exchange);
  const Gpu gpu({.devices = 2, .multiprocessors = 1});
  const auto config = [&](const std::string& workers) {
    return tiny_config({kDgc, "device=cuda:0", "workers_per_rank=" + workers, "exchange=" + exchange,
                        R"(model.freeze=["0.weight", "5.weight"])"});
  };
  constexpr int kSteps = 5;
  const Trained truth = trained(config("2"), kSteps);
  for (const Connected& rank : trained_by_nccl(config("1"), 2, kSteps)) {
    CHECK(rank.outcome.empty());
    CHECK(rank.weights == truth.weights);
  }
}

TEST_CASE("evaluations leave recordings as they are, once their memory is there") {
  const TinyText text;
  const Gpu gpu({.multiprocessors = 1});
  const auto recorded = [] {
    int64_t all = 0;
    for (const auto& [site, times] : fake_cuda::call_sites()) {
      if (std::string(site.call) == "cudaStreamBeginCapture") all += times;
    }
    return all;
  };
  fake_cuda::fail(0);  // counts calls from here
  std::vector<int64_t> after_each;
  const AfterStep evaluate = [&](int, int, Rank& rank, Backend&) {
    after_each.push_back(recorded());
    rank.finish_steps();
    while (rank.next_metrics()) {
    }
    rank.evaluate();
  };
  trained_by_nccl(text.config({kDgc, "device=cuda:0", "workers_per_rank=2"}), 1, 7, evaluate);
  CHECK(after_each.back() > 0);
  CHECK(after_each.back() == after_each.at(4));
}

TEST_CASE("ranks that NCCL connects replay recordings of the same step, also after an evaluation, which rank 0 makes") {
  const TinyText text;
  const Gpu gpu({.devices = 2, .multiprocessors = 1});
  const auto config = [&](const std::string& workers) {
    return text.config({kDgc, "device=cuda:0", "workers_per_rank=" + workers});
  };
  constexpr int kSteps = 9;
  const Trained truth = trained(config("2"), kSteps);
  const AfterStep evaluate = [](int, int step, Rank& rank, Backend&) {
    if (step != 4) return;
    rank.finish_steps();
    while (rank.next_metrics()) {
    }
    rank.evaluate();
  };
  const size_t launched = fake_cuda::executed("cudaGraphLaunch");
  for (const Connected& rank : trained_by_nccl(config("1"), 2, kSteps, evaluate)) {
    CHECK(rank.outcome.empty());
    CHECK(rank.weights == truth.weights);
  }
  CHECK(fake_cuda::executed("cudaGraphLaunch") > launched);
}

TEST_CASE("a rank that alone records anew what NCCL does is seen") {
  const Gpu gpu({.devices = 2});
  const Config config = tiny_config({kSgd, "device=cuda:0", "workers_per_rank=1"});
  const AfterStep allocate = [](int number, int step, Rank&, Backend& backend) {
    if (number == 0 && step == 4) const Buffer more(backend.device(), 64, MemoryUse::other);
  };
  const std::vector<Connected> ranks = trained_by_nccl(config, 2, 9, allocate);
  CHECK_FALSE((ranks[0].outcome.empty() && ranks[1].outcome.empty()));
  CHECK_THAT(fake_cuda::complaint(), Catch::Contains("in its own"));
}

TEST_CASE("ranks end after a failure, though they have recorded what NCCL does") {
  const Gpu gpu({.devices = 2});
  const Config config = tiny_config({kSgd, "device=cuda:0", "workers_per_rank=1"});
  const std::vector<Connected> ranks = trained_by_nccl(config, 2, 1000, [](int number, int step, Rank&, Backend&) {
    if (number == 1 && step == 6) throw InternalError("rank 1 is broken");
  });
  CHECK_THAT(ranks[0].outcome, Catch::Contains("remote process exited") || Catch::Equals("another rank has failed"));
  CHECK(ranks[1].outcome == "rank 1 is broken");
  CHECK(fake_cuda::complaint().empty());
}
