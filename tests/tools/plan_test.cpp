#include "tools/plan.h"

#include <catch.hpp>
#include <mutex>

#include "data/speech/speech.h"
#include "kernels/cpu/cpu_backend.h"
#include "paths.h"
#include "tasks/task.h"
#include "tensor/counting_device.h"
#include "tensor/direct_upload.h"
#include "tensor/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/shipped.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"
#include "tests/support/wrapped_device.h"
#include "tools/step_model.h"
#include "train/rank.h"

namespace dgc {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / 1048576; }

// The processor, which counts what its memory is for.
class CountingCpu final : public test::WrappedDevice {
 public:
  void count(MemoryUse use, int64_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);  // lanes allocate too
    counted_.add(use, bytes);
  }
  std::unique_ptr<Upload> make_upload(size_t bytes) override { return std::make_unique<DirectUpload>(*this, bytes); }
  const MemoryCount& counted() const { return counted_; }

 private:
  std::mutex mutex_;
  MemoryCount counted_;
};

// What rank 0 takes in steps at every sparsity, an evaluation and a checkpoint, which is in `run`.
MemoryCount measured(const Config& config, const test::TempRun& run) {
  const Datasets sets = open_sets(config);
  MemoryCount counted;
  const auto communicators = make_thread_communicators(static_cast<int>(config.ranks));
  run_ranks(communicators, [&](Communicator& communicator) {
    const auto device = std::make_shared<CountingCpu>();
    CpuBackend backend(1, Fp32Math::exact, device);
    Rank rank(config, sets.view(), backend, communicator);
    for (int i = 0; i < 4 || rank.epoch() <= static_cast<double>(config.optimizer.sparsity.warmup.epochs); ++i) {
      rank.train_step();
      rank.next_metrics();
    }
    rank.finish_steps();
    while (rank.next_metrics()) {
    }
    if (config.optimizer.flush_at_end) {
      const int64_t before = device->counted().peak(MemoryUse::messages);
      rank.flush();
      DGC_CHECK(device->counted().peak(MemoryUse::messages) == before, "the flush found the room made for it");
    }
    rank.evaluate_all();
    CheckpointStore store(run.path());
    DGC_CHECK(rank.save(store, 1).empty(), "saved");
    if (communicator.rank() == 0) counted = device->counted();
  });
  return counted;
}

// Bytes of the tensors in a checkpoint's file.
int64_t bytes_in(const Checkpoint& checkpoint, const std::string& name) {
  const SafetensorsFile file = checkpoint.open(name);
  int64_t bytes = 0;
  for (const auto& [tensor, entry] : file.tensors()) bytes += std::ssize(entry.bytes);
  return bytes;
}

void check_planned_checkpoint(const PlanCheckpoint& plan, const Config& config, const Checkpoint& real) {
  CHECK(plan.shared == bytes_in(real, "weights.safetensors") + bytes_in(real, kSharedFile));
  if (real.manifest().values.integer("unexchanged_steps") != 0) return;  // within a round it holds more
  int64_t workers = 0;
  for (int64_t worker = 0; worker < config.workers_per_rank; ++worker) workers += bytes_in(real, worker_file(worker));
  CHECK(plan.workers == workers);
}

void check_plan(const Config& config, bool knows_labels = true) {
  const Plan plan = make_plan(config);
  const test::TempRun run;
  const MemoryCount real = measured(config, run);
  for (size_t i = 0; i < kMemoryUses; ++i) {
    const auto use = static_cast<MemoryUse>(i);
    if (use == MemoryUse::scratch) continue;  // an estimate
    CAPTURE(i);
    if (use == MemoryUse::batches && !knows_labels) {
      CHECK(static_cast<double>(plan.memory.of(use)) == Approx(static_cast<double>(real.peak(use))).epsilon(0.05));
    } else {
      CHECK(plan.memory.of(use) == real.peak(use));
    }
  }
  check_planned_checkpoint(plan.checkpoint, config, newest_model(run.path()));
}

}  // namespace

TEST_CASE("the paper's compression ratios come out of the plan") {
  const auto [file, parameters, dense, sent, ratio] = GENERATE(table<std::string, int64_t, double, double, double>(
      {{"alexnet_imagenet", 60'965'224, 232.56, 0.389, 597.7},
       {"resnet50_imagenet", 25'557'032, 97.49, 0.352, 276.7},
       {"ptb_lstm1500", 51'034'000, 194.68, 0.422, 461.8},
       {"librispeech_deepspeech", 117'461'168, 448.08, 0.737, 608.1}}));
  const Plan plan = make_plan(load_config(DGC_SOURCE_DIR "/configs/paper/" + file + ".json"));
  CHECK(plan.total.parameters == parameters);
  CHECK(mib(plan.total.dense_bytes()) == Approx(dense).margin(0.005));
  CHECK(mib(plan.total.paper_bytes) == Approx(sent).margin(0.0005));
  CHECK(static_cast<double>(plan.total.dense_bytes()) / static_cast<double>(plan.total.paper_bytes) ==
        Approx(ratio).margin(0.1));
}

TEST_CASE("every shipped config has a plan, and none needs its data for that") {
  const std::vector<std::string> configs = test::shipped_configs();
  for (const std::string& config : configs) {
    CAPTURE(config);
    CHECK(make_plan(load_config(config)).total.parameters > 0);
  }
  CHECK(configs.size() >= 15);
}

TEST_CASE("fp16, Rice codes and sparse 1-D tensors take ResNet-50 above 1000x") {
  const std::string file = DGC_SOURCE_DIR "/configs/paper/resnet50_imagenet.json";
  const std::vector<std::string> wire = {"exchange.wire.values=fp16", "exchange.wire.indices=rice"};
  const Plan dense = make_plan(load_config(file, wire));
  // 25,502,912 elements in 54 matrices and 54,120 in the others, counted by hand: 25,502 entries of 12 + 16 bits and
  // padding.
  CHECK(dense.total.sent_bytes == 305904);
  CHECK(dense.total.paper_bytes == 369492);

  const Plan sparse = make_plan(load_config(file, {wire[0], wire[1], "exchange.small_tensors=sparse"}));
  CHECK(sparse.total.sent_bytes == 91088);
  CHECK(sparse.total.dense_bytes() / sparse.total.sent_bytes == 1122);
  CHECK(sparse.total.parameters == dense.total.parameters);
  CHECK(sparse.tensors.size() == 55);
  CHECK(sparse.tensors.back().kept == 541);

  REQUIRE(sparse.formats.size() == 16);
  const auto ratio = [&](WireValues values, WireIndices indices) {
    for (const PlanFormat& f : sparse.formats) {
      if (f.format == WireFormat{values, indices}) {
        return static_cast<double>(sparse.total.dense_bytes()) / static_cast<double>(f.sent_bytes);
      }
    }
    return 0.0;
  };
  CHECK(ratio(WireValues::fp32, WireIndices::int32) == Approx(490.5).margin(0.1));
  CHECK(ratio(WireValues::fp32, WireIndices::run16) == Approx(650.9).margin(0.1));
  CHECK(ratio(WireValues::bf16, WireIndices::block16) == Approx(965.9).margin(0.1));
  CHECK(ratio(WireValues::int8, WireIndices::rice) == Approx(1564.8).margin(0.1));
}

TEST_CASE("the plan's rows are the model's tensors") {
  const Plan plan = make_plan(test::tiny_config({"optimizer.sparsity=0.9"}));
  REQUIRE(plan.tensors.size() == 5);
  const PlanRow& convolution = plan.tensors[0];
  CHECK(convolution.name == "0.weight");
  CHECK(convolution.shape == Shape{8, 1, 3, 3});
  CHECK(convolution.kept == 7);  // of 72
  CHECK(convolution.paper_bytes == 7 * 6);
  const PlanRow& scale = plan.tensors[1];
  CHECK(scale.name == "1.weight");
  CHECK(scale.kept == 0);
  CHECK(scale.paper_bytes == 8 * 4);
  CHECK(plan.total.parameters == 72 + 8 + 8 + 512 + 4);
  CHECK(plan.total.paper_bytes == 7 * 6 + 51 * 6 + 20 * 4);
  CHECK(plan.total.kept == 7 + 51);
}

TEST_CASE("small tensors in 16 bits are planned with two bytes each, and a format's bits are those of its message") {
  const auto sent = [](const std::string& small) {
    return make_plan(test::tiny_config({test::kDgc, "exchange.small_tensors=" + small})).tensors.at(1).sent_bytes;
  };
  CHECK((sent("dense") == 8 * 4 && sent("dense_fp16") == 8 * 2));
  const Config config = test::tiny_config();
  const Plan plan = make_plan(config);
  const auto format = std::ranges::find(plan.formats, config.optimizer.dgc.wire, &PlanFormat::format);
  REQUIRE(format != plan.formats.end());
  CHECK(format->sent_bytes == 128 + 80);
  CHECK(format->entry_bits == Approx(8 * 128 / 11.0));  // 1 entry of 72, and 10 of 512
}

TEST_CASE("scratch is that of the largest filter on a processor, and of all on a GPU, with gradients") {
  const auto scratch = [](std::vector<std::string> more) {
    more.insert(more.end(), {test::kDgc, R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 4})",
                             "workers_per_rank=3", "workers_at_once=2"});
    return make_plan(test::tiny_config(more)).memory.of(MemoryUse::scratch);
  };
  // 3 x 3 weights: 1 x 4, 2 of 4 x 4, 4 x 8, 8 x 8, 8 x 16 and 16 x 16.
  CHECK(scratch({"device=cpu"}) == 4 * 9 * 16 * 16);
  CHECK(scratch({"device=cuda:0"}) == 2 * 2 * 4 * 9 * (4 + 2 * 16 + 32 + 64 + 128 + 256));
}

TEST_CASE("break-even against a dense ring all-reduce") {
  CHECK(break_even_sparsity(4, 6) == Approx(2.0 / 3));     // 4 x 6 B x 1/3 = 8 B
  CHECK(break_even_sparsity(16, 8) == Approx(15.0 / 16));  // 16 x 8 B / 16 = 8 B
  CHECK(break_even_sparsity(2, 4) == 0);
  CHECK(break_even_sparsity(1, 6) == 0);
  // 4 workers x k entries of 64 bits and 8 bytes of 2^24 elements: k = 2^22. And 16-bit values that all are sent take a
  // bit more each.
  CHECK(break_even_sparsity(4, {WireValues::fp32, WireIndices::int32}) == Approx(0.75).margin(1e-4));
  CHECK(break_even_sparsity(3, {WireValues::fp16, WireIndices::rice}) == 0);
  CHECK(break_even_sparsity(4, {WireValues::fp16, WireIndices::rice}) > 0);
}

TEST_CASE("which sparsities of a run travel how") {
  // 584 elements in two tensors: 8 bytes of each are 4672. Messages of 1808, 944 and 128 bytes; 20 floats go beside
  // them.
  const auto four = plan_phases(test::tiny_config(), 4), sixteen = plan_phases(test::tiny_config(), 16);
  REQUIRE(four.size() == 3);
  CHECK((four[0].sparsity == 0.5 && four[1].sparsity == 0.75 && four[2].sparsity == 0.98));
  CHECK((four[0].travel == Travel::dense && four[0].sent_bytes == 4 * 604));
  CHECK((four[1].travel == Travel::sparse && four[1].sent_bytes == 944 + 80));
  CHECK((four[2].travel == Travel::sparse && four[2].sent_bytes == 128 + 80));
  CHECK((sixteen[1].travel == Travel::dense && sixteen[2].travel == Travel::sparse));
  CHECK(plan_phases(test::tiny_config({"optimizer.warmup.epochs=0"}), 4).size() == 1);
}

TEST_CASE("what is sent per sample that was trained on since the last exchange") {
  // 208 bytes at 98 %, 4 images of a worker in a step.
  const auto sample = [](const std::vector<std::string>& more) {
    return plan_phases(test::tiny_config(more), 4).back().bytes_per_sample;
  };
  CHECK(sample({}) == 52);
  CHECK(sample({"exchange.every_steps=8"}) == 6.5);
  CHECK(sample({"exchange.workers_per_group=2"}) == 26);
}

TEST_CASE("which sparsities of a run travel how between groups, and split") {
  const Config grouped = test::tiny_config({"exchange.workers_per_group=2"});
  const auto four = plan_phases(grouped, 4), eight = plan_phases(grouped, 8);  // 2 and 4 groups
  CHECK((four[0].travel == Travel::sparse && four[0].sent_bytes == 1808 + 80));
  CHECK((eight[0].travel == Travel::dense && eight[1].travel == Travel::sparse));
  CHECK_THROWS_WITH(plan_phases(grouped, 5), Catch::Contains("5 workers cannot be divided into groups of 2"));

  // Of 4 workers. 592 elements with the gap between the tensors are dealt out in shards of 160. 292 entries: rows of
  // 2 x 146 words and padding are 1216 bytes, 73 sums 496, and 4 x 1712 are more than 4672. 146 entries: 640 and 272.
  // 11 entries: rows of 2 x 5 words, in 64 bytes, and 2 sums in 64.
  const auto split = plan_phases(test::tiny_config({"exchange.algorithm=split_reduce"}), 4);
  CHECK((split[0].travel == Travel::dense && split[0].sent_bytes == 4 * 604));
  CHECK((split[1].travel == Travel::split_reduce && split[1].sent_bytes == 4 * 640 + 272 + 80));
  CHECK((split[2].travel == Travel::split_reduce && split[2].sent_bytes == 4 * 64 + 64 + 80));
}

TEST_CASE("the planned memory is what a rank allocates") {
  const std::string small = R"(model={"type": "resnet", "depth": 8, "classes": 4})";
  const auto variant =
      GENERATE(std::vector<std::string>{test::kSgd}, std::vector<std::string>{test::kSgd, "exchange.dense_values=fp16"},
               std::vector<std::string>{test::kSgd, "exchange.dense_values=fp16", "ranks=2", "workers_per_rank=2"},
               std::vector<std::string>{test::kDgc},
               std::vector<std::string>{test::kDgc, "training.batch_per_worker=1", "training.eval_batch=1"},
               std::vector<std::string>{test::kDgc, "ranks=2", "workers_per_rank=2", "exchange.wire.values=\"fp16\""},
               std::vector<std::string>{test::kDgc, "ranks=2", "workers_per_rank=2", "optimizer.flush_at_end=true",
                                        "exchange.wire.indices=rice", "exchange.small_tensors=dense_fp16"},
               std::vector<std::string>{test::kDgc, "exchange.workers_per_group=2", "ranks=2", "workers_per_rank=2"},
               std::vector<std::string>{test::kDgc, "exchange.every_steps=2", "ranks=2", "workers_per_rank=2"},
               std::vector<std::string>{test::kDgc, "exchange.every_steps=2", "exchange.wait=1000", "ranks=2",
                                        "workers_per_rank=2", "exchange.wire.values=fp16"},
               std::vector<std::string>{test::kSgd, "exchange.every_steps=3"},
               std::vector<std::string>{test::kDgc, "workers_per_rank=3", "workers_at_once=2"},
               std::vector<std::string>{test::kDgc, "training.accumulate=2", "ranks=2", "workers_per_rank=2"},
               std::vector<std::string>{test::kDgc, "exchange.workers_per_group=2", "ranks=4", "workers_per_rank=1"},
               std::vector<std::string>{test::kDgc, "exchange.algorithm=split_reduce", "exchange.transport=sparse"},
               std::vector<std::string>{test::kDgc, "exchange.algorithm=split_reduce", "ranks=2", "workers_per_rank=2"},
               std::vector<std::string>{test::kDgc, "ranks=2", "workers_per_rank=2", "exchange.overlap=on",
                                        "exchange.bucket_mb=0.02", "exchange.wire.values=fp16"},
               std::vector<std::string>{R"(optimizer={"type": "dgc", "sparsity": 0.9, "momentum_correction": false})",
                                        "exchange.small_tensors=sparse"},
               std::vector<std::string>{R"(optimizer={"type": "dgc", "sparsity": 0.999, "flush_at_end": true})"});
  const Config config = [&] {
    auto overrides = variant;
    overrides.insert(overrides.end(), {small, "data.channels=3"});
    return test::tiny_config(overrides);
  }();
  CAPTURE(variant);
  check_plan(config);
}

TEST_CASE("the planned memory of a language model is what a rank allocates") {
  const test::TinyText text;
  text.write("valid.txt", test::tiny_text(200));
  text.write("test.txt", test::tiny_text(200));
  const auto variant = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"ranks=2", "workers_per_rank=2"},
                                std::vector<std::string>{"training.accumulate=2", "exchange.every_steps=2"},
                                std::vector<std::string>{"optimizer={\"type\": \"sgd\"}", "model.tied=false"});
  auto overrides = variant;
  overrides.insert(overrides.end(), {"model.vocabulary=400", "model.hidden=40"});
  const Config config = text.config(overrides);
  check_plan(config);
}

TEST_CASE("the planned memory of a speech model is what a rank allocates") {
  const test::TinySpeech speech;
  const auto variant = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"ranks=2", "workers_per_rank=2"},
                                std::vector<std::string>{"training.accumulate=2"},
                                std::vector<std::string>{"data.validation_split=0.2", "data.test_limit=2"},
                                std::vector<std::string>{"optimizer={\"type\": \"sgd\"}", "model.bidirectional=false"});
  // As long as the longest recording, where the planned steps and the real ones are the same.
  const auto longest = [&] {
    const Config config = speech.config();
    const Datasets sets = open_sets(config);
    return dynamic_cast<const Speech&>(*sets.train).corpus().longest_seconds();
  }();
  auto overrides = variant;
  overrides.insert(overrides.end(), {"model.hidden=60", fmt::format("data.max_seconds={}", longest + 0.05)});
  const Config config = speech.config(overrides);
  check_plan(config, false);
}

TEST_CASE("a planned checkpoint has u and v of each worker, and weights and momentum once") {
  const auto planned = [](const std::vector<std::string>& more) {
    return make_plan(test::tiny_config(more)).checkpoint;
  };
  // 604 parameters; means and variances of 8 channels, whose batches are counted in 8 bytes.
  CHECK(planned({}).workers == 4 * 4 * (2 * 604 + 16));
  CHECK(planned({}).shared == 4 * (604 + 16) + 8 + 4 * 604);
  CHECK(planned({}).has_momentum);
  CHECK(planned({test::kSgd}).workers == 4 * 4 * 16);
  const PlanCheckpoint plain = planned({R"(optimizer={"type": "sgd", "momentum": 0})"});
  CHECK(plain.shared == 4 * (604 + 16) + 8);
  CHECK_FALSE(plain.has_momentum);
  // v, and the momentum of a worker's own steps; the shared step has none, so no u.
  CHECK(planned({"exchange.every_steps=8"}).workers == 4 * 4 * (2 * 604 + 16));
  CHECK(planned({"exchange.workers_per_group=2"}).workers == 4 * (2 * 2 * 604 + 4 * 16));
}

TEST_CASE("a modelled step counts each product once forward and twice backward") {
  const Config config = load_config(DGC_SOURCE_DIR "/configs/paper/resnet50_imagenet.json");
  const StepModel model = model_step(config, device_model("h200"));
  // 4.089 G multiply-adds for an image of 224 x 224 (torchvision's count of ResNet-50), of which the first layer, whose
  // input needs no gradient, has 0.118 G.
  const auto images = static_cast<double>(config.workers_per_rank * config.training.batch_per_worker);
  CHECK(model.total.flops == Approx(images * 2e9 * (3 * 4.089 - 0.118)).epsilon(0.001));
  CHECK(model.ops.front().seconds >= model.ops.back().seconds);
  double seconds = 0;
  for (const ModelledPart& phase : model.phases) seconds += phase.seconds;
  CHECK(seconds == Approx(model.total.seconds));
  CHECK(model.dgc_share > 0);
  CHECK(model.dgc_share < 0.01);  // the goal for ResNet-50
}

TEST_CASE("the modelled steps of the paper's models stay what they are") {
  // docs/results.md has these numbers. What changes one of them by more than a twentieth changes that table too.
  const auto [file, launches, megabytes, milliseconds] =
      GENERATE(table<std::string, int64_t, double, double>({{"resnet50_imagenet", 1546, 188'025, 190.2},
                                                            {"alexnet_imagenet", 282, 22'857, 31.92},
                                                            {"resnet110_cifar10_dgc", 3127, 9'015, 31.28},
                                                            {"ptb_lstm1500", 109, 8'860, 11.29},
                                                            {"an4_lstm800", 494, 17'823, 542.6},
                                                            {"librispeech_deepspeech", 630, 112'417, 2911.8}}));
  CAPTURE(file);
  const Config config = load_config(DGC_SOURCE_DIR "/configs/paper/" + file + ".json", {"workers_at_once=1"});
  const ModelledPart step = model_step(config, device_model("h200")).total;
  CHECK(static_cast<double>(step.launches) == Approx(static_cast<double>(launches)).epsilon(0.05));
  CHECK(static_cast<double>(step.bytes) / 1e6 == Approx(megabytes).epsilon(0.05));
  CHECK(1e3 * step.seconds == Approx(milliseconds).epsilon(0.05));
}

TEST_CASE("a network without parameters is refused, as there is nothing to train") {
  CHECK_THROWS_WITH(make_plan(test::tiny_config({R"(model.layers=[{"type": "flatten"}, {"type": "relu"}])"})),
                    "model.layers: no layer has parameters, so there is nothing to train");
}

TEST_CASE("a plan says what each further worker takes, where the GPU's memory decides how many are at once") {
  const auto planned = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {test::kDgc, "workers_per_rank=3"});
    return make_plan(test::tiny_config(overrides));
  };
  const Plan chosen = planned({"device=cuda:0"});
  CHECK(chosen.each_more_at_once > 0);
  CHECK(planned({"device=cuda:0", "workers_at_once=2"}).memory.total() ==
        chosen.memory.total() + chosen.each_more_at_once);
  for (const char* decided : {"workers_at_once=2", "workers_at_once=1", "exchange.overlap=on", "device=cpu"}) {
    CHECK(planned({"device=cuda:0", decided}).each_more_at_once == 0);
  }
}

TEST_CASE("workers at the same time are modelled as long as the longest of them, or as what they move together") {
  Config config = load_config(DGC_SOURCE_DIR "/configs/paper/resnet110_cifar10_dgc.json");
  config.precision = Precision::bf16;                                // so that nearly all is launches
  const StepModel model = model_step(config, device_model("h200"));  // a GPU has room for all
  config.workers_at_once = 1;
  const ModelledPart alone = model_step(config, device_model("h200")).total;
  // Each worker brings the filters into cuDNN's order for itself, before each pass.
  CHECK(model.total.launches == alone.launches + 14);
  CHECK(model.total.bytes > alone.bytes);
  CHECK(model.total.seconds < 0.5 * alone.seconds);
  CHECK(model.total.seconds >= static_cast<double>(alone.bytes) / device_model("h200").bytes_per_second);
  double seconds = 0;
  for (const ModelledPart& op : model.ops) seconds += op.seconds;
  CHECK(seconds == Approx(model.total.seconds));
}

TEST_CASE("every shipped config has a modelled step, in 16 bits and on a machine without a GPU too") {
  for (const std::string& path : test::shipped_configs()) {
    CAPTURE(path);
    Config config = load_config(path);
    if (config.model.type == "lstm_lm" && config.model.lstm.vocabulary == 0) continue;
    const StepModel single = model_step(config, device_model("h100"));
    config.precision = Precision::bf16;
    const double half = model_step(config, device_model("h100")).total.seconds;
    CHECK(half > 0);
    // Small models and ResNet-110 take longer in 16 bits: their time is that of launches, and converting the input is
    // one more.
    const bool large = path.find("/paper/") != std::string::npos && path.find("resnet110") == std::string::npos;
    if (large) CHECK(half < single.total.seconds);
  }
}

TEST_CASE("a plan of a language model needs to know its words") {
  const test::TinyText text;
  CHECK_THROWS_WITH(make_plan(text.config()), Catch::Contains("model.vocabulary: only training looks at the data"));
}

}  // namespace dgc
