#include "tools/generate.h"

#include <catch.hpp>
#include <cmath>
#include <set>

#include "tensor/errors.h"
#include "tests/support/tiny_text.h"
#include "tools/choose_word.h"

namespace dgc {
namespace {

using namespace test;

std::vector<std::string> words_of(const std::filesystem::path& run, const GenerateOptions& options) {
  std::vector<std::string> words;
  generate(run, options, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

}  // namespace

TEST_CASE("a word is chosen by its share of the softmax") {
  const std::vector<float> logits = {0, std::log(2.f), std::log(5.f)};  // 1/8, 2/8, 5/8
  const auto at = [&](float uniform) { return choose_word(logits, {.uniform = uniform}); };
  CHECK((at(0) == 0 && at(0.12f) == 0));
  CHECK((at(0.13f) == 1 && at(0.37f) == 1));
  CHECK((at(0.38f) == 2 && at(0.9999999f) == 2));
  const auto sharper = [&](float uniform) { return choose_word(logits, {.temperature = 0.5, .uniform = uniform}); };
  CHECK((sharper(0.03f) == 0 && sharper(0.04f) == 1));  // 1/30, 4/30, 25/30
  CHECK((sharper(0.16f) == 1 && sharper(0.17f) == 2));
  const auto without = [&](float uniform) { return choose_word(logits, {.uniform = uniform, .never = 2}); };
  CHECK((without(0.33f) == 0 && without(0.34f) == 1 && without(0.9999999f) == 1));  // 1/3, 2/3
}

TEST_CASE("at temperature 0 the likeliest word comes, the lower number of two alike, and not what must never") {
  const std::vector<float> logits = {1, 3, 2, 3};
  CHECK(choose_word(logits, {.temperature = 0, .uniform = 0.9f}) == 1);
  CHECK(choose_word(logits, {.temperature = 0, .never = 1}) == 3);
  CHECK_THROWS_WITH(choose_word(std::vector<float>{0, NAN}, {}), Catch::Contains("diverged"));
}

TEST_CASE("a model of a text that repeats itself goes on with it") {
  const TinyText text;
  std::string line, all;
  for (int i = 0; i < 60; ++i) all += "the cat sat on a mat\n";
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) text.write(name, all);
  const auto run = train(text.config({R"(optimizer={"type": "sgd", "momentum": 0, "clip_norm": 1})", "model.hidden=16",
                                      "model.layers=1", "model.dropout=0", "workers_per_rank=1", "data.bptt=7",
                                      "training.epochs=12", R"(learning_rate={"type": "constant", "base": 4})"}),
                         {.out = text.path("run")});
  CHECK(metrics_of(run).back().number("test_perplexity").value() < 1.2);
  using Words = std::vector<std::string>;
  CHECK(words_of(run, {.prompt = "the cat", .words = 7, .temperature = 0}) ==
        Words{"the", "cat", "sat", "on", "a", "mat", "<eos>", "the", "cat"});
  CHECK(words_of(run, {.prompt = "a mat\nthe\n", .words = 1, .temperature = 0}) ==
        Words{"a", "mat", "<eos>", "the", "<eos>", "the"});
  CHECK(words_of(run, {.prompt = "", .words = 2, .temperature = 0}) == Words{"the", "cat"});
  CHECK(words_of(run, {.prompt = "the dog", .words = 0}) == Words{"the", "dog"});

  const GenerateOptions hot{.prompt = "a", .words = 40, .temperature = 3};
  GenerateOptions other = hot;
  other.seed = 2;
  const Words words = words_of(run, hot);
  CHECK(words.size() == 41);
  CHECK(words == words_of(run, hot));
  CHECK(words != words_of(run, other));
  CHECK(std::ranges::count(words, "<unk>") == 0);
  // Hot enough, all words are equally likely, whatever comes before: only what is drawn tells them apart.
  const Words drawn = words_of(run, {.prompt = "", .words = 40, .temperature = 1000});
  CHECK(std::set(drawn.begin(), drawn.end()).size() > 3);
}

TEST_CASE("what cannot generate says why") {
  const TinyText text;
  const auto images = train(tiny_config({"training.max_steps=1"}), {.out = text.path("images")});
  CHECK_THROWS_WITH(words_of(images, {}), Catch::Contains("is not the run of a language model"));
  CHECK_THROWS_WITH(words_of(text.path("nothing"), {}), Catch::Contains("is not a run directory"));
}

}  // namespace dgc
