#include "tools/predict.h"

#include <catch.hpp>
#include <cmath>

#include "config/config.h"
#include "run/class_names.h"
#include "run/file_io.h"
#include "run/safetensors.h"
#include "tests/data/images/images.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_text.h"
#include "tools/evaluate.h"

namespace dgc {
namespace {

using namespace test;

// Red ants, green bees and blue cats, and a model of four classes that has seen them.
struct SeenAnimals {
  TempFolder folder;
  std::filesystem::path run = folder.path() + "/run";

  SeenAnimals() {
    for (const char* split : {"train", "val"}) {
      write(split, "ant", 250, 10, 10);
      write(split, "bee", 10, 250, 10);
      write(split, "cat", 10, 10, 250);
    }
    train(tiny_config({R"(data={"type": "image_folder", "path": ")" + folder.path() + R"(", "image_size": 8})",
                       "workers_per_rank=1", "training.batch_per_worker=3", "training.epochs=6", kSgd}),
          {.out = run});
  }
  void write(const std::string& split, const std::string& name, uint8_t r, uint8_t g, uint8_t b) const {
    folder.write(split + "/" + name + "/1.png", png_bytes(solid(12, 9, r, g, b), 12, 9));
  }
  std::string picture(const std::string& name) const { return folder.path() + "/val/" + name + "/1.png"; }
};

std::vector<Prediction> predicted(const std::filesystem::path& run, const std::string& file) {
  std::vector<Prediction> out;
  predict(run, {file}, {}, [&](const std::string& name, const std::vector<Prediction>& all) {
    CHECK(name == file);
    out = all;
  });
  return out;
}

}  // namespace

TEST_CASE("the likeliest classes come first, with the softmax's shares") {
  const std::vector<float> logits = {0, std::log(5.f), std::log(2.f), 0, -INFINITY};
  CHECK_THROWS_WITH(likeliest(logits, {}, 5, "cat.png"), Catch::StartsWith("cat.png: ") && Catch::Contains("diverged"));
  const auto top = likeliest(std::span(logits).first(4), {"ant", "bee", "cat"}, 3, "");
  REQUIRE(top.size() == 3);
  CHECK((top[0].label == 1 && top[0].name == "bee" && top[0].probability == Approx(5.0 / 9)));
  CHECK((top[1].label == 2 && top[1].name == "cat" && top[1].probability == Approx(2.0 / 9)));
  CHECK((top[2].label == 0 && top[2].name == "ant" && top[2].probability == Approx(1.0 / 9)));
  const auto all = likeliest(std::vector<float>{1000, 0, 1000}, {}, 5, "");
  REQUIRE(all.size() == 3);
  CHECK((all[0].label == 0 && all[1].label == 2 && all[2].label == 1 && all[0].name.empty()));
  CHECK(all[1].probability == Approx(0.5));
}

TEST_CASE("a run knows its classes by name, and predicts what its evaluation computes") {
  const SeenAnimals seen;
  CHECK(run_class_names(seen.run) == std::vector<std::string>{"ant", "bee", "cat"});
  const std::string file = seen.folder.path() + "/logits.safetensors";
  evaluate_run(seen.run, {.logits = file});
  std::vector<float> all(3 * 4);
  SafetensorsFile(read_file(std::filesystem::path(file)), file)
      .load("logits", {all.data(), {3, 4}}, *make_cpu_device());
  size_t row = 0;
  for (const char* name : {"ant", "bee", "cat"}) {
    CAPTURE(name);
    const auto top = predicted(seen.run, seen.picture(name));
    REQUIRE(top.size() == 4);
    CHECK(top[0].name == name);
    const auto expected = likeliest(std::span(all).subspan(4 * row++, 4), {"ant", "bee", "cat"}, 5, "");
    for (size_t i = 0; i < 4; ++i) {
      CHECK(top[i].label == expected[i].label);
      CHECK(top[i].name == expected[i].name);
      CHECK(top[i].probability == Approx(expected[i].probability).epsilon(1e-4));
    }
  }

  std::filesystem::remove(seen.run / kClassNamesFile);  // as a run of before there were names
  CHECK((predicted(seen.run, seen.picture("cat"))[0].name.empty() &&
         predicted(seen.run, seen.picture("cat"))[0].label == 2));
  write_file(seen.run / kClassNamesFile, R"(["ant", 3])");
  CHECK_THROWS_WITH(predicted(seen.run, seen.picture("cat")), Catch::Contains("classes.json: not a list of names"));
}

TEST_CASE("of many classes the five likeliest are told") {
  const SeenAnimals seen;
  const auto run =
      train(load_config((seen.run / "config.json").string(),
                        {R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 7})", "training.epochs=1"}),
            {.out = seen.folder.path() + "/seven"});
  CHECK(predicted(run, seen.picture("bee")).size() == 5);
}

TEST_CASE("what cannot predict says why") {
  const TinyText text;
  const auto words = train(text.config({"training.max_steps=1"}), {.out = text.path("words")});
  CHECK_THROWS_WITH(predicted(words, "x.png"), Catch::Contains("is not the run of a model of images"));
  const auto made_up = train(tiny_config({"training.max_steps=1"}), {.out = text.path("made_up")});
  CHECK_THROWS_WITH(predicted(made_up, "x.png"), Catch::Contains("a model of synthetic images"));
  CHECK_FALSE(std::filesystem::exists(made_up / kClassNamesFile));
  CHECK_THROWS_WITH(predicted(text.path("nothing"), "x.png"), Catch::Contains("is not a run directory"));
}

}  // namespace dgc
