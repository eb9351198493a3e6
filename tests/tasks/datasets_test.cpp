#include <catch.hpp>
#include <set>

#include "config/model_types.h"
#include "data/text/text.h"
#include "run/log.h"
#include "tasks/make.h"
#include "tasks/task.h"
#include "tensor/errors.h"
#include "tests/data/fixtures.h"
#include "tests/data/images/images.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"
#include "tools/evaluate.h"
#include "tools/loaded_model.h"
#include "tools/report/report.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

// A set of MNIST's kind with images of so many pixels.
void write_idx(const TempFolder& folder, const std::string& prefix, uint32_t side) {
  constexpr uint32_t kImages = 40;
  Bytes labels(kImages);
  for (size_t i = 0; i < kImages; ++i) labels[i] = static_cast<uint8_t>(i % 10);
  folder.write(prefix + "-images-idx3-ubyte", idx_bytes({0x803, kImages, side, side}, Bytes(kImages * side * side)));
  folder.write(prefix + "-labels-idx1-ubyte", idx_bytes({0x801, kImages}, labels));
}

Config mnist_config(const TempFolder& folder, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {R"(data={"type": "mnist", "path": "x"})", "data.path=" + folder.path(),
                                  R"(model={"type": "layers", "layers": [{"type": "flatten"},
                                                                         {"type": "linear", "out": 10}]})"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return tiny_config(all);
}

// A set of other traits than the truth.
class Told final : public ImageDataset {
 public:
  Told(const ImageShape& shape, int64_t classes, std::vector<std::string> names = {})
      : shape_(shape), classes_(classes), names_(std::move(names)) {}
  int64_t size() const override { return 1; }
  ImageShape shape() const override { return shape_; }
  int64_t classes() const override { return classes_; }
  std::vector<std::string> class_names() const override { return names_; }
  int32_t read(int64_t, const Draw*, float*) const override { return 0; }

 private:
  ImageShape shape_;
  int64_t classes_;
  std::vector<std::string> names_;
};

// A folder of images with a file that is none.
void write_folder(const TempFolder& folder) {
  const Bytes image = png_bytes(solid(8, 8, 1, 2, 3), 8, 8);
  for (const std::string name : {"ant", "cat"}) {
    for (const std::string file : {"/a.png", "/b.png", "/c.png"}) folder.write("train/" + name + file, image);
    folder.write("val/" + name + "/a.png", image);
  }
  folder.write("train/ant/notes.txt", {});
}

std::string difference(const Dataset& train, const Dataset& other) {
  return user_error([&] { require_alike(train, other, "test", "data.path"); });
}

}  // namespace

TEST_CASE("test images of another size than the training images are refused", "[datasets]") {
  const TempFolder folder;
  write_idx(folder, "train", 28);
  const uint32_t side = GENERATE(32u, 200u, 27u);
  write_idx(folder, "t10k", side);
  const std::string expected = fmt::format(
      "data.path: the image shape is 28x28x1 in the training set, but {0}x{0}x1 in the test set, and one model reads "
      "both",
      side);
  CHECK_THROWS_WITH(open_sets(mnist_config(folder)), expected);
  const TempRun run;
  CHECK_THROWS_WITH(train(mnist_config(folder), {.out = run.path() / "run"}), expected);
  CHECK_FALSE(std::filesystem::exists(run.path() / "run"));
}

TEST_CASE("images that padding brings to one size are one size", "[datasets]") {
  const TempFolder folder;
  write_idx(folder, "train", 28);
  write_idx(folder, "t10k", 30);
  CHECK_NOTHROW(open_sets(mnist_config(folder, {"data.pad_to=32"})));
}

TEST_CASE("images of another size than the set usually has are told, as dgc predict takes them to be of that one") {
  const TempFolder folder;
  for (const auto& [side, told] : {std::pair{28u, false}, std::pair{64u, true}}) {
    write_idx(folder, "train", side);
    write_idx(folder, "t10k", side);
    const TempRun run;
    train(mnist_config(folder), {.out = run.path() / "run"});
    const std::string log = run.read("run/log.txt");
    CHECK(told ==
          (log.find("the images are 64 x 64, and those of data.type \"mnist\" are 28 x 28") != std::string::npos));
  }
}

TEST_CASE("a model with more outputs than there are classes is told, whatever kind of set it reads") {
  const TempFolder folder;
  write_idx(folder, "train", 28);
  write_idx(folder, "t10k", 28);
  const TempRun run;
  train(mnist_config(folder, {R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 12}])"}),
        {.out = run.path() / "run"});
  CHECK_THAT(run.read("run/log.txt"),
             Contains("the model has 12 classes and the data 10: 2 of its outputs never get an example"));
}

TEST_CASE("an evaluation of a run knows the run's words alone, and computes in fp32") {
  const TinyText text;
  const TempRun run;
  const std::filesystem::path path = train(text.config({"training.max_steps=1"}), {.out = run.path() / "run"});
  CHECK_NOTHROW(evaluate_run(path, {}));
  CHECK_THROWS_WITH(evaluate_run(path, {.overrides = {"data.vocabulary_size=3"}}),
                    "data.vocabulary_size: the run knows the words of " + (path / "vocabulary.txt").string() +
                        ", and no others; leave this --set out");
  CHECK_THROWS_WITH(evaluate_run(path, {.overrides = {"precision=bf16"}}),
                    Catch::StartsWith("precision: a trained model computes in fp32"));
}

TEST_CASE("an evaluation takes labels, and what is held back, as the run has learnt them") {
  const TempFolder folder;
  write_idx(folder, "train", 28);
  write_idx(folder, "t10k", 28);
  const TempRun run;
  const Config config =
      mnist_config(folder, {"data.only_classes=[9, 0]", "data.validation_split=0.5", "workers_per_rank=1",
                            R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 2}])"});
  const auto path = train(config, {.out = run.path() / "run"});
  const auto evaluate = [&](const std::vector<std::string>& overrides) {
    evaluate_run(path, {.overrides = overrides});
  };
  CHECK_NOTHROW(evaluate({}));
  CHECK_THROWS_WITH(evaluate({"data.only_classes=[0, 9]"}),
                    "data.only_classes: the model has learnt the labels of the run's own data; leave this --set out");
  CHECK_THROWS_WITH(evaluate({"data.type=fashion_mnist"}), Catch::StartsWith("data.type: the model has learnt the"));
  for (const std::string key : {"seed=4", "data.validation_split=0.25", "data.train_limit=4"}) {
    CHECK_THROWS_WITH(evaluate({key}), Catch::StartsWith(key.substr(0, key.find('=')) +
                                                         ": another validation set would be held back than the run's"));
  }
  CHECK_NOTHROW(evaluate({"data.validation_split=0", "seed=4", "data.train_limit=4"}));

  // A folder has its classes by the names that the run knows.
  const auto named =
      train(mnist_config(folder, {"data.type=fashion_mnist", "workers_per_rank=1"}), {.out = run.path() / "named"});
  CHECK_NOTHROW(config_of_model(named, {R"(data={"type": "image_folder", "path": "x", "image_size": 28})"}));

  const TinySpeech speech;
  const auto heard = train(speech.config({"training.max_steps=1"}), {.out = run.path() / "speech"});
  CHECK_NOTHROW(evaluate_run(heard, {.overrides = {"seed=4", "data.train_limit=8"}}));
  CHECK_THROWS_WITH(evaluate_run(heard, {.overrides = {"data.alphabet=BA "}}),
                    Catch::StartsWith("data.alphabet: the model has learnt the labels of the run's own data"));
}

TEST_CASE("of chosen classes there are the images alone, numbered as in the list", "[datasets]") {
  const TempFolder folder;
  write_idx(folder, "train", 28);  // 40 images, of which each class has 4
  write_idx(folder, "t10k", 28);
  const Config config = mnist_config(folder, {"data.only_classes=[7, 0, 3]", R"(model.layers=[{"type": "flatten"},
                                                                                    {"type": "linear", "out": 3}])"});
  const auto images = make_images(config, Split::train);
  REQUIRE(images->size() == 12);
  CHECK(images->classes() == 3);
  std::vector<float> image(static_cast<size_t>(images->shape().numel()));
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < 12; ++i) labels.push_back(images->read(i, nullptr, image.data()));
  CHECK(labels == std::vector<int32_t>{1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0});  // 0, 3, 7 in turn
  CHECK_NOTHROW(open_sets(config));
}

TEST_CASE("what a model needs alike is compared, whatever it reads", "[datasets]") {
  CHECK(difference(Told({4, 5, 3}, 10), Told({4, 5, 3}, 11)) ==
        "data.path: the number of classes is 10 in the training set, but 11 in the test set, and one model reads both");
  CHECK_THAT(difference(Told({4, 5, 3}, 10), Told({4, 5, 1}, 10)), Contains("image shape is 4x5x3"));
  CHECK_NOTHROW(require_alike(Told({4, 5, 3}, 10), Told({4, 5, 3}, 10), "test", "data.path"));
  const Told ours({4, 5, 3}, 2, {"cat", "dog"});
  CHECK(difference(ours, Told({4, 5, 3}, 2, {"cat", "ant"})) ==
        "data.path: class 1 is \"dog\" in the training set, but \"ant\" in the test set, and one model reads both");
  CHECK_NOTHROW(require_alike(ours, Told({4, 5, 3}, 2), "test", "data.path"));

  const TinyText text;
  const TextFile file{text.path("test.txt").string(), "data.test"};
  const Text two({.file = file, .limit = {}}, build_vocabulary(file, 2)),
      three({.file = file, .limit = {}}, build_vocabulary(file, 3));
  CHECK_THAT(difference(three, two), Contains("the vocabulary size is 3 in the training set, but 2"));

  const TinySpeech speech;
  const Datasets sounds = open_sets(speech.config());
  const Datasets other = open_sets(speech.config({"data.alphabet=AB -"}));
  CHECK_THAT(difference(*sounds.train, *other.test), Contains("the alphabet is AB  in the training set, but AB -"));
  const Datasets mels = open_sets(speech.config(
      {"data.features.kind=log_mel", "data.features.mels=8", "model.convolutions.kernel_frequencies=[5]"}));
  CHECK_THAT(difference(*sounds.train, *mels.test), Contains("the number of features is 41") && Contains("but 8"));
}

TEST_CASE("what two sets remark alike is told once", "[datasets]") {
  const TempFolder folder;
  write_folder(folder);
  const Config config = tiny_config({R"(data={"type": "image_folder", "path": "x", "image_size": 8})",
                                     "data.path=" + folder.path(), "data.validation_split=0.3"});
  const Datasets sets = open_sets(config);
  REQUIRE(sets.valid->remarks() == sets.train->remarks());
  const TempRun run;
  {
    const RunLog log(run.path());
    tell_remarks(sets);
  }
  const std::string told = run.read("log.txt");
  CHECK(occurrences(told, "notes.txt") == 1);
  CHECK_THAT(told, Contains("warning: the training set: " + folder.path() + "/train: 1 entry of class folders is no "));
}

TEST_CASE("a training says how many classes the data have, and warns where the model has more", "[datasets]") {
  const TempFolder folder;
  write_folder(folder);
  const auto [out, warned] = GENERATE(table<int, bool>({{2, false}, {5, true}}));
  const TempRun run;
  train(tiny_config({R"(data={"type": "image_folder", "path": "x", "image_size": 8})", "data.path=" + folder.path(),
                     fmt::format(R"(model.layers=[{{"type": "flatten"}}, {{"type": "linear", "out": {}}}])", out),
                     "workers_per_rank=1", "training.batch_per_worker=2", "training.max_steps=1"}),
        {.out = run.path() / "run"});
  const std::string log = run.read("run/log.txt");
  CHECK_THAT(log, Contains("6 training and 2 test images of 2 classes, into "));
  CHECK(occurrences(log, "the model has 5 classes and the data 2: 3 of its outputs never get an example") ==
        (warned ? 1U : 0U));
}

TEST_CASE("an evaluation by data with more classes than the model has is refused", "[datasets]") {
  const TempRun run;
  const auto path = train(tiny_config({"training.epochs=1"}), {.out = run.path() / "run"});
  CHECK_THROWS_WITH(evaluate_run(path, {.overrides = {"data.classes=400"}}),
                    "the model has 4 classes but the data has 400; set model.classes, or the out of the last of "
                    "model.layers, to 400");
  CHECK_NOTHROW(evaluate_run(path, {.overrides = {"data.classes=3"}}));
}

// Solid images of class_N's shade of grey, so many of each class, in `classes` below root/part.
void write_grey(const TempFolder& folder, const std::string& part, const std::vector<std::string>& classes, int each) {
  for (const std::string& name : classes) {
    const uint8_t shade = name == "cat" ? 250 : 10;
    for (int i = 0; i < each; ++i) {
      folder.write(fmt::format("{}/{}/{}.png", part, name, i), png_bytes(solid(9, 9, shade, shade, shade), 9, 9));
    }
  }
}

Config folder_config(const TempFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {R"(data={"type": "image_folder", "path": "x", "image_size": 4})",
                                  "data.path=" + folder.path(),
                                  "training.epochs=20",
                                  "training.batch_per_worker=2",
                                  "workers_per_rank=2",
                                  "learning_rate={\"type\": \"constant\", \"base\": 0.01}",
                                  R"(model={"type": "layers", "layers": [{"type": "flatten"},
                                                                         {"type": "linear", "out": 2}]})"};
  all.insert(all.end(), more.begin(), more.end());
  return tiny_config(all);
}

TEST_CASE("of a folder's classes a limit takes images of each", "[datasets]") {
  const TempFolder folder;
  write_grey(folder, "train", {"cat", "dog"}, 8);
  write_grey(folder, "val", {"cat", "dog"}, 5);
  const Config config = folder_config(folder, {"data.train_limit=4", "data.test_limit=3"});
  for (const auto& [split, expected] :
       {std::pair{Split::train, std::vector{0, 0, 1, 1}}, {Split::test, std::vector{0, 0, 1}}}) {
    const auto images = make_images(config, split);
    std::vector<int> labels;
    std::vector<float> pixels(static_cast<size_t>(images->shape().numel()));
    for (int64_t i = 0; i < images->size(); ++i) labels.push_back(images->read(i, nullptr, pixels.data()));
    CHECK(labels == expected);
  }
  const auto most = make_images(folder_config(folder, {"data.train_limit=9"}), Split::train);
  std::vector<float> pixels(static_cast<size_t>(most->shape().numel()));
  CHECK(most->read(4, nullptr, pixels.data()) == 0);
  CHECK(most->read(5, nullptr, pixels.data()) == 1);
}

TEST_CASE("a part that is held back of a folder is no test set of it", "[datasets]") {
  const TempFolder folder;
  write_grey(folder, "train", {"cat", "dog"}, 8);
  CHECK_THROWS_WITH(open_sets(folder_config(folder, {"data.validation_split=0.2"})),
                    Contains("and data.validation_split makes no test set"));
  CHECK_THROWS_WITH(open_sets(folder_config(folder)), !Contains("data.validation_split"));
}

TEST_CASE("the seed decides on made-up images, and on which are held back", "[datasets]") {
  const auto first_image = [](const Dataset& images) {
    const auto batches = images.evaluation_batches({.rows = 1}, {});
    return batches->next()->values;
  };
  const auto open = [](const std::string& seed) { return open_sets(tiny_config({seed, "data.validation_split=0.2"})); };
  const Datasets one = open("seed=1"), same = open("seed=1"), other = open("seed=2");
  CHECK(first_image(*one.test) == first_image(*same.test));
  CHECK(first_image(*one.test) != first_image(*other.test));

  const TempFolder folder;
  write_grey(folder, "train", {"cat", "dog"}, 20);
  write_grey(folder, "val", {"cat", "dog"}, 1);
  const auto held_back = [&](const std::string& seed) {
    const Datasets sets = open_sets(folder_config(folder, {seed, "data.validation_split=0.5"}));
    return sets.valid->evaluation_batches({.rows = 20}, {})->next()->labels;
  };
  std::set<std::vector<int32_t>> drawn;
  for (const char* seed : {"seed=1", "seed=1", "seed=2", "seed=3", "seed=4"}) drawn.insert(held_back(seed));
  CHECK((drawn.size() > 1 && drawn.size() <= 4));
}

TEST_CASE("of recordings a limit takes the first of each list", "[datasets]") {
  const TinySpeech speech;
  const Datasets sets = open_sets(speech.config({"data.train_limit=9", "data.test_limit=2"}));
  CHECK((sets.train->size() == 9 && sets.test->size() == 2));
}

TEST_CASE("a recording that is shorter than the config's window is refused by its list", "[datasets]") {
  const TinySpeech speech;
  speech.write("train.jsonl", speech.line("a.wav", "AB", "AB"));
  CHECK_NOTHROW(open_sets(speech.config({"training.batch_per_worker=1"})));
  const auto samples = static_cast<double>(spoken("AB").size());  // at 4 kHz
  CHECK_THROWS_WITH(open_sets(speech.config({fmt::format("data.features.window_ms={}", (samples + 1) / 4)})),
                    Contains("a.wav: it is ") && Contains("shorter than a window"));
}

TEST_CASE("a text that is missing is named by its own key", "[datasets]") {
  const TinyText text;
  for (const std::string key : {"train", "valid", "test"}) {
    CHECK_THROWS_WITH(open_sets(text.config({"data." + key + "=none.txt"})),
                      Contains("set data." + key + " to a text"));
  }
}

TEST_CASE("a batch has the rows that its set allows", "[datasets]") {
  const auto most_rows = [](const Config& config, Split split) { return task_of(config).most_rows(config, split); };
  const Config images = tiny_config({"data.test_limit=2", "data.validation_split=0.2", "training.eval_batch=64"});
  CHECK(most_rows(images, Split::train) == images.training.micro_batch());
  CHECK(most_rows(images, Split::valid) == 64);
  CHECK(most_rows(images, Split::test) == 2);
  const TinyText text;
  const Config words = text.config({"data.test_limit=20", "training.eval_batch=64"});
  CHECK(most_rows(words, Split::train) == words.data.text.bptt);
  CHECK((most_rows(words, Split::valid) == 20 && most_rows(words, Split::test) == 20));
  const TinySpeech speech;  // slower speech is longer, in training
  const Config plain = speech.config(), slow = speech.config({"data.augment.min_tempo=0.5"});
  CHECK(most_rows(slow, Split::train) > most_rows(plain, Split::train));
  CHECK(most_rows(slow, Split::test) == most_rows(plain, Split::test));
  const Datasets sets = open_sets(plain), slower = open_sets(slow);
  CHECK(slower.train->rows() > sets.train->rows());
  CHECK(slower.test->rows() == sets.test->rows());
}

TEST_CASE("an evaluation numbers classes as the run has learnt them", "[datasets]") {
  const TempFolder folder, other;
  write_grey(folder, "train", {"cat", "dog"}, 8);
  write_grey(folder, "val", {"cat", "dog"}, 2);
  write_grey(other, "train", {"ant", "dog"}, 1);  // a folder of its own in which a dog would be class 1, and an ant 0
  write_grey(other, "val", {"dog"}, 3);
  const TempRun run;
  const auto path = train(folder_config(folder), {.out = run.path() / "run"});
  CHECK(evaluate_run(path, {}).metrics.measures[kTestAccuracy] == 1);
  CHECK(evaluate_run(path, {.overrides = {"data.path=" + other.path()}}).metrics.measures[kTestAccuracy] == 1);
  write_grey(other, "val", {"ant"}, 3);
  CHECK_THROWS_WITH(evaluate_run(path, {.overrides = {"data.path=" + other.path()}}),
                    Contains("/val/ant: there is no class of this name in what the run has learnt"));
}

TEST_CASE("speech whose transcripts are too long for all recordings is refused before the first step", "[datasets]") {
  const TinySpeech speech;
  const std::string part = GENERATE("train", "test");
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += speech.line(fmt::format("short{}.wav", i), "A", std::string(200, 'B'));
  speech.write(part + ".jsonl", lines);
  const TempRun run;
  CHECK_THROWS_WITH(train(speech.config(), {.out = run.path() / "run"}),
                    Contains(fmt::format("the {} set: all utterances are too short for their transcripts (12 in all)",
                                         part == "train" ? "training" : part)));
}

TEST_CASE("a word model without a word that the run could write is refused", "[datasets]") {
  const TinySpeech speech;
  const TempRun run;
  const auto path = train(speech.config({"training.epochs=1"}), {.out = run.path() / "run"});
  const auto evaluated = [&](const std::string& word) {
    run.write("lm.arpa", "\\data\\\nngram 1=3\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 " + word + "\n\n\\end\\\n");
    EvaluateOptions options;
    options.scoring.decoding.beam = 4;
    options.scoring.decoding.words = run.path() / "lm.arpa";
    return evaluate_run(path, options);
  };
  CHECK_NOTHROW(evaluated("ABBA"));
  CHECK_THROWS_WITH(evaluated("abba"), Contains("lm.arpa: none of its words consists of characters of the run's"));
}

TEST_CASE("an evaluation by images of another size than the model's is refused", "[datasets]") {
  const TempRun run;
  const auto path = train(tiny_config({"training.epochs=1"}), {.out = run.path() / "run"});
  CHECK_THROWS_AS(evaluate_run(path, {.overrides = {"data.height=16"}}), UserError);
}

TEST_CASE("an evaluation takes no more memory than its data needs, however large its batch may be", "[datasets]") {
  const TempRun run;
  const auto path =
      train(tiny_config({"training.epochs=1", "training.eval_batch=1000000"}), {.out = run.path() / "run"});
  CHECK(evaluate_run(path, {}).metrics.measures[kTestLoss] > 0);
  const TinySpeech speech;
  const auto heard =
      train(speech.config({"training.max_steps=1", "data.validation_split=0.1", "training.eval_batch=1000000"}),
            {.out = speech.path("run")});
  CHECK(evaluate_run(heard, {}).metrics.measures[kTestLoss] > 0);
}

TEST_CASE("an old run with a key that is gone is evaluated, reported and resumed", "[datasets]") {
  const TempRun run;
  const auto path = train(tiny_config({"training.max_steps=6"}), {.out = run.path() / "run"});
  std::string config = run.read("run/config.json");
  config.insert(config.find("\"seed\""), "\"deterministic\": true,\n  ");
  run.write("run/config.json", config);
  CHECK(evaluate_run(path, {}).metrics.step == 6);
  CHECK_THAT(final_table(read_groups({path})), Contains("tiny"));
  CHECK_NOTHROW(train(tiny_config({"training.max_steps=12"}), {.out = path, .resume = true}));
  CHECK(run.read("run/config.json").find("deterministic") == std::string::npos);
}

TEST_CASE("an old run on made-up images, with keys of an augmentation, is evaluated", "[datasets]") {
  const TempRun run;
  const auto path = train(tiny_config({"training.epochs=1"}), {.out = run.path() / "run"});
  std::string config = run.read("run/config.json");
  const std::string before = R"("type": "synthetic")";
  config.replace(config.find(before), before.size(), before + R"(, "augment": {"flip": false, "pad_crop": 0})");
  run.write("run/config.json", config);
  CHECK_NOTHROW(evaluate_run(path, {}));
  const std::string after = R"("type": 5)";
  run.write("run/config.json", config.replace(config.find(before), before.size(), after));
  CHECK_THROWS_WITH(evaluate_run(path, {}), Contains("config.json: data.type: it must be"));
}

TEST_CASE("a wrong layer of a list is named by its place", "[datasets]") {
  const auto said = [](const std::string& layers) {
    const Config config = tiny_config({R"(model={"type": "layers", "layers": )" + layers + "}"});
    return user_error([&] { make_network(config.model, {8, 8, 6}); });
  };
  CHECK(said(R"([{"type": "relu"}, {"type": "conv2d", "out": 4, "kernel": 3, "groups": 4}])") ==
        "model.layers[1]: conv2d: groups 4 must divide the 6 input and 4 output channels");
  CHECK_THAT(said(R"([{"type": "max_pool", "kernel": 2, "stride": 1, "pad": 2}])"),
             Catch::StartsWith("model.layers[0]: pool: kernel 2"));
  CHECK_THAT(said(R"([{"type": "max_pool", "kernel": 20, "stride": 1}])"),
             Catch::StartsWith("model.layers[0]: pool: kernel 20 with padding 0 is larger than its input"));
  CHECK_THAT(said(R"([{"type": "flatten"}, {"type": "conv2d", "out": 4, "kernel": 3}])"),
             Catch::StartsWith("model.layers[1]: conv2d expects"));
  CHECK_THAT(said(R"([{"type": "flatten"}, {"type": "linear", "out": 1000000}, {"type": "linear", "out": 1000000}])"),
             Catch::StartsWith("2.weight: [1000000, 1000000] is more than the 2^36 numbers"));
}

}  // namespace dgc
