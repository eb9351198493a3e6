#include "data/speech/speech.h"

#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

// A recording of each number of frames, the i-th with i + 1 letters.
std::unique_ptr<Speech> speech_of(const TempFolder& folder, const std::vector<int>& frames, int64_t streams,
                                  OnBadExample on_bad_example = OnBadExample::refuse) {
  const SpeechOptions options{.alphabet = "AB", .on_bad_example = on_bad_example};
  std::vector<Utterance> utterances;
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::string name = std::to_string(i) + ".wav";
    const auto samples = static_cast<size_t>(160 + 160 * frames[i]);  // windows of 320 samples, every 160
    utterances.push_back({name, write_sound(folder, name, sine(300.0 * (1 + static_cast<double>(i)), 16000, samples)),
                          std::string(i, 'B') + "A", 0});
  }
  return std::make_unique<Speech>(std::make_unique<SpeechCorpus>(std::move(utterances), options), options, streams);
}

TEST_CASE("a batch of speech has as many streams and labels as every other, and who is not there has no frames") {
  const TempFolder folder;
  const auto speech = speech_of(folder, {3, 5, 6}, 2);
  CHECK(speech->size() == 3);
  CHECK(speech->sample() == Shape{2, 161});
  CHECK(speech->classes() == 3);
  CHECK(speech->most_labels() == 3);
  CHECK(speech->rows() >= 6);
  const auto batches = speech->evaluation_batches({.rows = 2}, {});
  const Batch* batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->values.size() == 5 * 2 * 161);
  CHECK(batch->lengths == std::vector<int32_t>{3, 5});
  CHECK(batch->labels == std::vector<int32_t>{1, 1, 0, 0, 2, 2, 1, 0});
  CHECK(batch->samples == std::vector<int32_t>{0, 1});
  const auto at = [&](size_t t, size_t s, size_t f) { return batch->values[(t * 2 + s) * 161 + f]; };
  const SpeechReader reader(speech->corpus(), {});
  SpeechScratch scratch({});
  std::vector<float> want;
  for (size_t stream = 0; stream < 2; ++stream) {
    reader.read(static_cast<int64_t>(stream), nullptr, scratch, want);
    want.resize(5 * 161, 0.f);
    for (size_t t = 0; t < 5; ++t) {
      for (size_t f = 0; f < 161; ++f) REQUIRE(at(t, stream, f) == want[t * 161 + f]);
    }
  }

  batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->values.size() == 6 * 2 * 161);
  CHECK(batch->lengths == std::vector<int32_t>{6, 0});
  CHECK(batch->labels == std::vector<int32_t>{3, 2, 2, 1, 0, 0, 0, 0});
  CHECK(batch->samples == std::vector<int32_t>{2});
  for (size_t t = 0; t < 6; ++t) {
    for (size_t f = 0; f < 161; ++f) REQUIRE(at(t, 1, f) == 0);
  }
  CHECK(batches->next() == nullptr);
}

TEST_CASE("speech of other lengths or transcripts has another fingerprint") {
  const TempFolder folder, other, third;
  const std::vector<Trait> three = speech_of(folder, {3, 5, 6}, 1)->fingerprint();
  CHECK(speech_of(other, {3, 5, 6}, 1)->fingerprint() == three);
  CHECK(speech_of(other, {3, 5, 7}, 1)->fingerprint() != three);
  CHECK(speech_of(third, {3, 6, 5}, 1)->fingerprint() != three);
}

TEST_CASE("training batches of speech begin at any step as if they had begun at the first") {
  const TempFolder folder;
  const auto speech = speech_of(folder, {3, 4, 5, 6, 7, 8, 9}, 1);
  WorkerBatches workers{.sampling = {7, 2, 1, 5}, .local_workers = 2};
  CHECK(speech->steps_per_epoch(workers.sampling) == 3);
  const auto all = speech->training_batches(workers, {});
  std::vector<Batch> whole;
  for (int i = 0; i < 10; ++i) whole.push_back(*all->next());
  CHECK(whole[0].lengths[0] < whole[4].lengths[0]);  // the first epoch goes from short to long
  workers.start_step = 3;
  const auto later = speech->training_batches(workers, {});
  for (size_t i = 6; i < 10; ++i) {
    const Batch& batch = *later->next();
    CHECK(batch.values == whole[i].values);
    CHECK((batch.labels == whole[i].labels && batch.lengths == whole[i].lengths && batch.step == whole[i].step));
  }
}

TEST_CASE("an evaluation of speech tells of each that it cannot read") {
  const TempFolder folder;
  const auto speech = speech_of(folder, {3, 4, 5}, 1, OnBadExample::skip);
  const auto spoil = [&](const std::string& name) { std::filesystem::resize_file(folder.path() + "/" + name, 50); };
  spoil("0.wav");
  const auto batches = speech->evaluation_batches({.rows = 1}, {});
  const Batch* batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->lengths == std::vector<int32_t>{0});
  CHECK(batch->samples.empty());
  CHECK(batch->values == std::vector<float>(161));
  REQUIRE(batch->bad_examples.size() == 1);
  CHECK_THAT(batch->bad_examples[0], Catch::Contains("0.wav"));
  batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->lengths == std::vector<int32_t>{4});
  CHECK(batch->bad_examples.empty());
}

}  // namespace
}  // namespace dgc
