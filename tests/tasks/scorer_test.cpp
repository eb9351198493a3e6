#include <catch.hpp>
#include <cmath>

#include "config/model_types.h"
#include "data/speech/speech.h"
#include "decode/error_rate.h"
#include "kernels/backend.h"
#include "layers/loss.h"
#include "tasks/speech_scorer.h"
#include "tasks/task.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"

namespace dgc {
namespace {

using namespace test;

// What the scorer of a config's test set says of two batches with the same sums.
Measures scored(const Config& given, Split split, const LossStats& sums, const Batch& batch = {},
                const std::vector<float>& output = {0}) {
  const Task& task = task_of(given);
  const Datasets sets = open_sets(given);
  const Config config = task.completed(given, sets);
  const Network network = make_network(config.model, task.sample(config, Split::test));
  const auto scorer = task.make_scorer(*sets.test, network, split, {});
  const auto backend = make_cpu_backend(1);
  Counts counts{};
  for (int times = 0; times < 2; ++times) {
    const Counts more = scorer->count(*backend, batch, {output.data(), {1, 1, std::ssize(output)}}, sums);
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += more[i];
  }
  return scorer->measures(counts, {"a.wav: it is cut short", "b.wav: it is gone"});
}

LossStats sums_of(double loss, double first, double second) {
  LossStats sums;
  sums.loss = loss;
  sums.counts[0] = first;
  sums.counts[1] = second;
  return sums;
}

}  // namespace

TEST_CASE("what is counted of images becomes their mean loss, accuracy and top-5") {
  const Measures test = scored(tiny_config({"data.test_samples=20"}), Split::test, sums_of(15, 4, 9));
  CHECK((test[kTestLoss] == 1.5 && test[kTestAccuracy] == 0.4 && test[kTestTop5] == 0.9));
  const Measures valid = scored(tiny_config({"data.test_samples=20"}), Split::valid, sums_of(15, 4, 9));
  CHECK((valid[kValidLoss] == 1.5 && valid[kValidAccuracy] == 0.4 && valid[kValidTop5] == 0.9));
}

TEST_CASE("what is counted of words becomes their mean loss, its perplexity, accuracy and top-5") {
  const TinyText text;
  const Config config = text.config();
  const auto words = static_cast<double>(open_sets(config).test->size());
  const Measures test = scored(config, Split::test, sums_of(words, words / 8, words / 4));
  CHECK((test[kTestLoss] == 2 && test[kTestPerplexity] == std::exp(2.0)));
  CHECK((test[kTestAccuracy] == 0.25 && test[kTestTop5] == 0.5));
  const Measures valid = scored(config, Split::valid, sums_of(words, words / 8, words / 4));
  CHECK((valid[kValidLoss] == 2 && valid[kValidPerplexity] == std::exp(2.0)));
}

TEST_CASE("utterances that are too short are not in the mean loss, and errors are those of words and of characters") {
  const TinySpeech speech;
  const Config config = speech.config();
  const Datasets sets = open_sets(config);
  const auto& data = dynamic_cast<const Speech&>(*sets.test);
  const auto longest = static_cast<int32_t>(data.size() - 1);
  const std::string& said = data.corpus().utterance(longest).text;
  const std::string heard = said.substr(0, 1);  // in one step of the network
  Batch batch;
  batch.samples = {longest};
  batch.lengths = {1};
  std::vector<float> output(static_cast<size_t>(data.classes()));
  output[static_cast<size_t>(data.alphabet().labels(heard, "").at(0))] = 1;
  const auto rate = [](const EditCount& count) {
    return static_cast<double>(count.errors()) / static_cast<double>(count.reference);
  };
  const double wer = rate(word_errors(said, heard)), cer = rate(character_errors(said, heard));
  REQUIRE(wer != cer);
  const Measures test = scored(config, Split::test, sums_of(6, 3, 1), batch, output);
  CHECK((test[kTestLoss] == 2 && test[kLeftOut] == 2));
  CHECK((test[kWordErrorRate] == wer && test[kCharacterErrorRate] == cer));
  const Measures valid = scored(config, Split::valid, sums_of(6, 3, 1), batch, output);
  CHECK((valid[kValidLoss] == 2 && valid[kValidWordErrorRate] == wer && valid[kValidCharacterErrorRate] == cer));
}

TEST_CASE("the texts of the test set are told, and of no other") {
  const TinySpeech speech;
  const Config config = speech.config();
  const Datasets sets = open_sets(config);
  const Network network = make_network(config.model, task_of(config).sample(config, Split::test));
  Batch batch;
  batch.samples = {1};
  batch.lengths = {1};
  const std::vector<float> output(static_cast<size_t>(sets.test->classes()));
  const auto backend = make_cpu_backend(1);
  for (const Split split : {Split::test, Split::valid}) {
    std::vector<std::string> told;
    const ScoringOptions options{.told = [&](const std::string& said, const std::string&) { told.push_back(said); }};
    const auto scorer = task_of(config).make_scorer(*sets.test, network, split, options);
    scorer->count(*backend, batch, {output.data(), {1, 1, std::ssize(output)}}, {});
    const std::string& said = dynamic_cast<const Speech&>(*sets.test).corpus().utterance(1).text;
    CHECK(told == (split == Split::test ? std::vector{said} : std::vector<std::string>()));
  }
}

TEST_CASE("the set whose utterances are all too short is named") {
  const TinySpeech speech;
  speech.write("test.jsonl", speech.line("short.wav", "A", std::string(200, 'B')));
  const Config config = speech.config();
  const Datasets sets = open_sets(config);
  const Network network = make_network(config.model, task_of(config).sample(config, Split::test));
  for (const auto& [split, name] : {std::pair{Split::valid, "validation"}, {Split::test, "test"}}) {
    CHECK_THROWS_WITH(task_of(config).make_scorer(*sets.test, network, split, {}),
                      Catch::StartsWith(fmt::format("the {} set: all utterances are too short", name)));
  }
}

TEST_CASE("a set of speech of which nothing can be read has no measures") {
  const TinySpeech speech;
  for (const Split split : {Split::valid, Split::test}) {
    CHECK_THROWS_WITH(scored(speech.config(), split, {}),
                      Catch::Equals("data: not one of 6 utterances can be read; of the first: a.wav: it is cut short"));
  }
}

TEST_CASE("a set of speech whose readable utterances are all too short for a loss has no measures either") {
  const TinySpeech speech;
  const Datasets sets = open_sets(speech.config());
  const Network network =
      make_network(speech.config().model, task_of(speech.config()).sample(speech.config(), Split::test));
  const auto scorer = task_of(speech.config()).make_scorer(*sets.test, network, Split::test, {});
  Counts sums{};
  sums[0] = 2;  // utterances
  CHECK_THROWS_WITH(
      scorer->measures(sums, {"a.wav: it is cut short"}),
      "data: not one of 2 utterances that can be read is long enough for its transcript; of the first that "
      "cannot be read: a.wav: it is cut short");
}

TEST_CASE("a transcript with the same character twice running takes one step more") {
  const TinySpeech speech;
  const auto remark = [&](const std::string& transcript, int64_t* steps = nullptr) {
    speech.write("test.jsonl", speech.line("long.wav", "ABAB", transcript) + speech.line("other.wav", "ABAB", "A"));
    const Config config = speech.config();
    const Datasets sets = open_sets(config);
    const auto& data = dynamic_cast<const Speech&>(*sets.test);
    const Network network = make_network(config.model, task_of(config).sample(config, Split::test));
    const int64_t each = network.loss().frames_per_step();
    if (steps != nullptr) *steps = (data.frames(0) + each - 1) / each;
    return remark_on_short_utterances(data, network, "test");
  };
  int64_t steps = 0;
  CHECK(remark("A", &steps).empty());
  REQUIRE(steps >= 2);
  std::string changing;
  for (int64_t i = 0; i < steps; ++i) changing += i % 2 == 0 ? 'A' : 'B';
  CHECK(remark(changing).empty());
  CHECK_THAT(remark(changing + "A"),
             Catch::StartsWith("the test set: 1 of 2 utterances is too short for its transcript"));
  std::string twice = changing;
  twice[1] = 'A';
  CHECK_THAT(remark(twice), Catch::StartsWith("the test set: 1 of 2 utterances is too short for its transcript"));
  CHECK_THAT(remark(twice), Catch::EndsWith("test.jsonl: line 1 (long.wav)"));  // all that are so are named
}

}  // namespace dgc
