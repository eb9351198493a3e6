#include "data/speech_loader.h"

#include <set>

#include "tests/data/sounds.h"

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
    options.augment.noise_probability = 1;
  }

  void open() {
    corpus = std::make_unique<SpeechCorpus>(utterances, Alphabet("AB"), SpeechCorpusOptions{});
    reader = std::make_unique<SpeechReader>(*corpus, options);
  }
  void spoil(int i) const { std::filesystem::resize_file(utterances[static_cast<size_t>(i)].path, 300); }

  TempFolder folder;
  std::vector<Utterance> utterances;
  SpeechReaderOptions options;
  std::unique_ptr<SpeechCorpus> corpus;
  std::unique_ptr<SpeechReader> reader;
};

SpeechLoaderOptions loader_options(int64_t samples) {
  SpeechLoaderOptions options;
  options.sampling = {samples, 2, 2, 9};
  options.buckets = {2, 0};
  options.workers = {0, 2, 0};
  return options;
}

bool same(const SpeechBatch& a, const SpeechBatch& b) {
  return a.step == b.step && a.worker == b.worker && a.frames == b.frames && a.values == b.values &&
         a.lengths == b.lengths && a.labels == b.labels && a.label_lengths == b.label_lengths &&
         a.utterances == b.utterances && a.bad_examples == b.bad_examples;
}

std::vector<SpeechBatch> take(const Recordings& recordings, const SpeechLoaderOptions& options, int count) {
  SpeechLoader loader(*recordings.reader, options);
  std::vector<SpeechBatch> out;
  for (int i = 0; i < count; ++i) out.push_back(loader.next());
  return out;
}

TEST_CASE("speech batches: features padded with zeros, time first, with lengths and labels") {
  Recordings recordings(3);
  recordings.open();
  SpeechEvalLoader loader(*recordings.reader, 3, OnBadExample::refuse, {});
  const SpeechBatch* batch = loader.next();
  REQUIRE(batch != nullptr);
  CHECK(batch->size() == 3);
  CHECK(batch->frames == 4);
  CHECK(batch->features == 161);
  CHECK(batch->lengths == std::vector<int32_t>{2, 3, 4});
  CHECK(batch->label_lengths == std::vector<int32_t>{1, 2, 3});
  CHECK(batch->labels == std::vector<int32_t>(6, 1));
  CHECK(batch->utterances == std::vector<int32_t>{0, 1, 2});
  REQUIRE(batch->values.size() == 4 * 3 * 161);
  SpeechScratch scratch(recordings.options.features);
  std::vector<float> want;
  for (size_t b = 0; b < 3; ++b) {
    recordings.reader->read(static_cast<int64_t>(b), nullptr, scratch, want);
    want.resize(4 * 161, 0.f);
    for (size_t t = 0; t < 4; ++t) {
      for (size_t f = 0; f < 161; ++f) REQUIRE(batch->values[(t * 3 + b) * 161 + f] == want[t * 161 + f]);
    }
  }
  CHECK(loader.next() == nullptr);
}

TEST_CASE("speech batches: threads, a later start and the split into ranks change nothing") {
  Recordings recordings(11);
  recordings.options.augment = {0.5, 10, 30, 0.8, 1.2, {1, 3, 0.5, 1, 20}};
  recordings.open();
  SpeechLoaderOptions options = loader_options(11);
  const std::vector<SpeechBatch> all = take(recordings, options, 12);  // two workers, three epochs of two steps

  options.prefetch = {4, 8};
  const std::vector<SpeechBatch> threaded = take(recordings, options, 12);
  for (size_t i = 0; i < 12; ++i) CHECK(same(all[i], threaded[i]));

  options.workers = {1, 1, 3};
  const std::vector<SpeechBatch> second = take(recordings, options, 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(second[i].step == static_cast<int64_t>(3 + i));
    CHECK(same(second[i], all[2 * (3 + i) + 1]));
  }

  // An epoch: four utterances a step, none twice; another epoch augments the same ones otherwise.
  std::set<int32_t> epoch;
  for (size_t i = 0; i < 4; ++i) epoch.insert(all[i].utterances.begin(), all[i].utterances.end());
  CHECK(epoch.size() == 8);
  for (const SpeechBatch& batch : all) CHECK(batch.frames <= recordings.reader->max_frames());
}

TEST_CASE("speech batches: what cannot be read is refused, or its neighbour takes the place") {
  Recordings recordings(8);
  recordings.open();
  recordings.spoil(3);  // after its header was seen
  recordings.spoil(4);
  SpeechLoaderOptions options = loader_options(8);
  CHECK_THAT(user_error([&] { take(recordings, options, 4); }), Catch::Contains(".wav: the file is truncated"));

  options.on_bad_example = OnBadExample::skip;
  std::multiset<int32_t> seen;
  std::vector<std::string> sentences;
  for (const SpeechBatch& batch : take(recordings, options, 4)) {
    CHECK(batch.size() == 2);
    seen.insert(batch.utterances.begin(), batch.utterances.end());
    sentences.insert(sentences.end(), batch.bad_examples.begin(), batch.bad_examples.end());
  }
  CHECK(seen == std::multiset<int32_t>{0, 1, 2, 2, 2, 5, 6, 7});
  REQUIRE(sentences.size() == 2);
  std::sort(sentences.begin(), sentences.end());
  CHECK_THAT(sentences[0], Catch::Contains("103.wav: the file is truncated"));
  CHECK_THAT(sentences[1], Catch::Contains("104.wav: the file is truncated"));
}

TEST_CASE("speech batches: the shortest one's place is taken by a longer one, and what when there is none") {
  Recordings recordings(4);
  recordings.open();
  recordings.spoil(0);
  SpeechLoaderOptions options = loader_options(4);
  options.on_bad_example = OnBadExample::skip;
  std::multiset<int32_t> seen;
  for (const SpeechBatch& batch : take(recordings, options, 2)) {
    seen.insert(batch.utterances.begin(), batch.utterances.end());
  }
  CHECK(seen == std::multiset<int32_t>{1, 1, 2, 3});
  for (int i = 1; i < 4; ++i) recordings.spoil(i);
  CHECK_THAT(user_error([&] { take(recordings, options, 1); }), Catch::Contains("truncated") && Catch::Contains("nor"));
}

TEST_CASE("speech batches: evaluation leaves bad ones out") {
  Recordings recordings(6);
  recordings.open();
  for (const int i : {1, 2, 3}) recordings.spoil(i);
  SpeechEvalLoader loader(*recordings.reader, 2, OnBadExample::skip, {2, 2});
  const SpeechBatch* batch = loader.next();
  REQUIRE(batch != nullptr);
  CHECK(batch->utterances == std::vector<int32_t>{0});
  CHECK(batch->bad_examples.size() == 1);
  batch = loader.next();
  REQUIRE(batch != nullptr);
  CHECK(batch->utterances == std::vector<int32_t>{4, 5});
  CHECK(loader.bad_batches().size() == 2);
  CHECK(loader.next() == nullptr);
}

TEST_CASE("speech reader: a recording longer than listed, and augmentation only with a draw") {
  Recordings recordings(3);
  recordings.utterances[1].seconds = 0.03;  // it has 0.04: within what rounding may do
  recordings.open();
  SpeechScratch scratch(recordings.options.features);
  std::vector<float> plain, again, augmented;
  recordings.reader->read(0, nullptr, scratch, plain);
  recordings.reader->read(0, nullptr, scratch, again);
  const SpeechDraw draw(1, 1, 0);
  recordings.reader->read(0, &draw, scratch, augmented);
  CHECK(plain == again);
  CHECK(plain != augmented);

  write_sound(recordings.folder, "100.wav", sine(100, 16000, 4000));
  CHECK_THAT(user_error([&] { recordings.reader->read(0, nullptr, scratch, plain); }),
             Catch::Contains("100.wav: it is 0.25 s long, but listed with 0.03 s"));
}

}  // namespace
}  // namespace dgc
