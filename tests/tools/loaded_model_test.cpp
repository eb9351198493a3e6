#include "tools/loaded_model.h"

#include <catch.hpp>

#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tools/evaluate.h"

namespace dgc {

using test::TempRun;

TEST_CASE("the weights of a checkpoint that a training has removed are those of another one") {
  const TempRun run;
  const ParamLayout layout({{"w", {1}, {}}}), none(std::vector<ParamSpec>{});
  const Arena weights(make_cpu_device(), layout), statistics(make_cpu_device(), none);
  const auto save = [&](int64_t step) {
    *weights.data() = static_cast<float>(step);
    CheckpointStore store(run.path());
    store.begin(step);
    Manifest manifest{.step = step, .epoch = 0, .values = {}, .files = {}};
    manifest.files.push_back(save_weights(store, {weights, statistics, step}));
    store.commit(manifest, 1);
  };
  save(1);
  FoundCheckpoint found([&] { return newest_model(run.path()); });
  save(2);
  *weights.data() = 0;
  found.load(weights, statistics, {});
  CHECK(*weights.data() == 2);
  CHECK(found->manifest().step == 2);

  run.write("checkpoints/step-000000002/weights.safetensors", "");
  CHECK_THROWS_WITH(found.load(weights, statistics, {}), Catch::Contains("weights.safetensors is damaged"));
  std::filesystem::remove_all(found->path());
  CHECK_THROWS_WITH(found.load(weights, statistics, {}),
                    Catch::Contains("has no checkpoint: none is saved yet, or all"));
}

TEST_CASE("the weights alone, without the workers' files, make a model, and another model is refused") {
  const TempRun run;
  const auto config =
      test::tiny_config({R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 4})", "training.max_steps=1"});
  const auto trained = train(config, {.out = run.path() / "run"});
  const auto checkpoint = newest_model(trained);
  size_t removed = 0;
  for (const ManifestFile& file : checkpoint.manifest().files) {
    if (file.name != kWeightsFile) removed += std::filesystem::remove(checkpoint.path() / file.name);
  }
  REQUIRE(removed > 0);
  CHECK_NOTHROW(evaluate_run(trained, {}));
  CHECK_THROWS_WITH(evaluate_run(trained, {.overrides = {"model.width=8"}}), Catch::Contains("but the model needs"));
}

TEST_CASE("the checkpoint of another model is refused, though it has all tensors of this one") {
  const TempRun run;
  const auto config = [](int64_t depth, int64_t steps) {
    return test::tiny_config(
        {fmt::format(R"(model={{"type": "resnet", "depth": {}, "width": 4, "classes": 4}})", depth),
         fmt::format("training.max_steps={}", steps)});
  };
  const auto deep = train(config(14, 2), {.out = run.path() / "deep"});
  const auto shallow = train(config(8, 1), {.out = run.path() / "shallow"});
  const auto refused = Catch::Contains("weights.safetensors: the model has no tensor layer1.1.bn1.bias");
  CHECK_NOTHROW(evaluate_run(deep, {}));
  CHECK_THROWS_WITH(evaluate_run(deep, {.overrides = {"model.depth=8"}}), refused);
  std::filesystem::remove_all(shallow / "checkpoints");
  std::filesystem::rename(deep / "checkpoints", shallow / "checkpoints");
  CHECK_THROWS_WITH(train(config(8, 3), {.out = shallow, .resume = true}), refused);
}

}  // namespace dgc
