#include <catch.hpp>

#include "config/model_types.h"
#include "tensor/errors.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"

// Runs that hold some of their weights still.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

std::string weights_file(const fs::path& run) {
  return (CheckpointStore(run).list().front() / "weights.safetensors").string();
}

// A tensor of a file, whatever its shape, as bytes.
std::string bytes_of(const std::string& file, const std::string& tensor) {
  const SafetensorsFile weights(read_file(file), file);
  return std::string(weights.tensors().at(tensor).bytes);
}

}  // namespace

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
    CHECK(state.has((is_dgc ? "v." : "momentum.") + spec.name) == !spec.frozen);
  }
  CHECK(rows_of_kind(folder.path() / "run", "step").back().integer("dense_bytes") == 4 * trained);
  CHECK(bytes_of(file, "1.running_mean") != std::string(8 * sizeof(float), '\0'));
}

TEST_CASE("the gradient of what is trained does not depend on what is frozen before it") {
  const auto bias_after_a_step = [](const std::string& freeze) {
    std::vector<float> bias(4);
    on_ranks_of(tiny_config({kSgd, "model.freeze=" + freeze}), [&](Rank& rank, Communicator&) {
      step(rank);
      const View last = rank.weights().view(rank.weights().layout().size() - 1);
      rank.weights().device().copy_out(bias.data(), last.data, bias.size() * sizeof(float));
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

}  // namespace dgc
