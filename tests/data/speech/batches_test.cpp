#include <set>

#include "data/speech/speech.h"
#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

// Recordings of rising length, i-th "AA...A" of i + 1 letters, whose tones tell them apart.
struct Recordings {
  explicit Recordings(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(100 + i) + ".wav";
      const auto samples = static_cast<size_t>(480 + 160 * i);
      write_sound(folder, name, sine(100.0 * (i + 1), 16000, samples));
      utterances.push_back(
          {"list: " + name, folder.path() + "/" + name, std::string(static_cast<size_t>(i) + 1, 'A'), 0});
    }
  }

  // Utterances of two streams, with buckets of two batches.
  std::unique_ptr<Speech> open(SpeechOptions options = {}) const {
    options.alphabet = "AB";
    options.buckets = {2, 0};
    return std::make_unique<Speech>(std::make_unique<SpeechCorpus>(utterances, options), options, 2);
  }
  void spoil(int i) const { std::filesystem::resize_file(utterances[static_cast<size_t>(i)].path, 300); }

  TempFolder folder;
  std::vector<Utterance> utterances;
};

WorkerBatches two_workers(int64_t samples) { return {.sampling = {samples, 2, 2, 9}, .local_workers = 2}; }

bool same_utterances(const Batch& a, const Batch& b) {
  return a.step == b.step && a.worker == b.worker && a.values == b.values && a.lengths == b.lengths &&
         a.labels == b.labels && a.samples == b.samples && a.bad_examples == b.bad_examples;
}

std::vector<Batch> take(const Speech& speech, const WorkerBatches& workers, int count,
                        const PrefetchOptions& prefetch = {}) {
  const auto batches = speech.training_batches(workers, prefetch);
  std::vector<Batch> out;
  for (int i = 0; i < count; ++i) out.push_back(*batches->next());
  return out;
}

TEST_CASE("speech batches: threads, a later start and the split into ranks change nothing") {
  Recordings recordings(11);
  const auto speech = recordings.open({.augment = {0.5, 10, 30, 0.8, 1.2, {1, 3, 0.5, 1, 20}}});
  WorkerBatches workers = two_workers(11);
  const std::vector<Batch> all = take(*speech, workers, 12);  // two workers, three epochs of two steps

  const std::vector<Batch> threaded = take(*speech, workers, 12, {4, 8});
  for (size_t i = 0; i < 12; ++i) CHECK(same_utterances(all[i], threaded[i]));

  workers.first_worker = workers.local_workers = 1;
  workers.start_step = 3;
  const std::vector<Batch> second = take(*speech, workers, 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(second[i].step == static_cast<int64_t>(3 + i));
    CHECK(same_utterances(second[i], all[2 * (3 + i) + 1]));
  }

  // An epoch: four utterances a step, none twice; another epoch augments the same ones otherwise.
  std::set<int32_t> epoch;
  for (size_t i = 0; i < 4; ++i) epoch.insert(all[i].samples.begin(), all[i].samples.end());
  CHECK(epoch.size() == 8);
  for (const Batch& batch : all) CHECK(std::ranges::max(batch.lengths) <= speech->rows());
}

TEST_CASE("speech batches: what cannot be read is refused, or its neighbour takes the place") {
  Recordings recordings(8);
  const auto strict = recordings.open();
  const auto speech = recordings.open({.on_bad_example = OnBadExample::skip});
  recordings.spoil(3);  // after its header was seen
  recordings.spoil(4);
  CHECK_THAT(user_error([&] { take(*strict, two_workers(8), 4); }), Catch::Contains(".wav: the file is truncated"));

  std::multiset<int32_t> seen;
  std::vector<std::string> sentences;
  for (const Batch& batch : take(*speech, two_workers(8), 4)) {
    CHECK(batch.samples.size() == 2);
    seen.insert(batch.samples.begin(), batch.samples.end());
    sentences.insert(sentences.end(), batch.bad_examples.begin(), batch.bad_examples.end());
  }
  CHECK(seen == std::multiset<int32_t>{0, 1, 2, 2, 2, 5, 6, 7});
  REQUIRE(sentences.size() == 2);
  std::sort(sentences.begin(), sentences.end());
  CHECK_THAT(sentences[0], Catch::Contains("103.wav: the file is truncated"));
  CHECK_THAT(sentences[1], Catch::Contains("104.wav: the file is truncated"));
}

TEST_CASE("speech batches: the shortest one's place is taken by a longer one, and what when there is none") {
  const Recordings recordings(4);
  const auto speech = recordings.open({.on_bad_example = OnBadExample::skip});
  recordings.spoil(0);
  std::multiset<int32_t> seen;
  for (const Batch& batch : take(*speech, two_workers(4), 2)) seen.insert(batch.samples.begin(), batch.samples.end());
  CHECK(seen == std::multiset<int32_t>{1, 1, 2, 3});
  for (int i = 1; i < 4; ++i) recordings.spoil(i);
  CHECK_THAT(user_error([&] { take(*speech, two_workers(4), 1); }),
             Catch::Contains("truncated") && Catch::Contains("nor"));
}

TEST_CASE("speech batches: evaluation leaves bad ones out, and may have a batch of nobody") {
  const Recordings recordings(6);
  const auto speech = recordings.open({.on_bad_example = OnBadExample::skip});
  for (const int i : {1, 2, 3}) recordings.spoil(i);
  const auto batches = speech->evaluation_batches({.rows = 2}, {2, 2});
  const Batch* batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->samples == std::vector<int32_t>{0});
  CHECK(batch->bad_examples.size() == 1);
  batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->samples.empty());
  CHECK(batch->lengths == std::vector<int32_t>{0, 0});
  REQUIRE(batch->bad_examples.size() == 2);
  CHECK_THAT(batch->bad_examples[0], Catch::Contains("102.wav"));
  CHECK_THAT(batch->bad_examples[1], Catch::Contains("103.wav"));
  batch = batches->next();
  REQUIRE(batch != nullptr);
  CHECK(batch->samples == std::vector<int32_t>{4, 5});
  CHECK(batch->bad_examples.empty());
  CHECK(batches->next() == nullptr);
}

}  // namespace
}  // namespace dgc
