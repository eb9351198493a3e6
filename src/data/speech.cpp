#include "data/speech.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace dgc {
namespace {

// With as many streams, and as much room for labels, as every batch has. A stream that is not there has no frames.
void fill(Batch& batch, const SpeechBatch& from, int64_t streams, int64_t most_labels) {
  const auto count = static_cast<size_t>(from.size()), all = static_cast<size_t>(streams);
  const size_t row = count * static_cast<size_t>(from.features), padded = all * static_cast<size_t>(from.features);
  batch.step = from.step;
  batch.worker = from.worker;
  batch.images.assign(static_cast<size_t>(from.frames) * padded, 0.f);
  for (size_t t = 0; t < static_cast<size_t>(from.frames); ++t) {
    std::copy_n(from.values.data() + t * row, row, batch.images.data() + t * padded);
  }
  batch.lengths = from.lengths;
  batch.lengths.resize(all);
  batch.samples = from.utterances;
  batch.bad_examples = from.bad_examples;
  const size_t label_row = 1 + static_cast<size_t>(most_labels);
  batch.labels.assign(all * label_row, 0);
  auto labels = from.labels.begin();
  for (size_t s = 0; s < count; ++s) {
    const int32_t n = from.label_lengths[s];
    batch.labels[s * label_row] = n;
    std::copy_n(labels, n, batch.labels.begin() + static_cast<std::ptrdiff_t>(s * label_row) + 1);
    labels += n;
  }
}

class TrainingSpeech final : public Batches {
 public:
  TrainingSpeech(const Speech& speech, const SpeechReader& reader, const SpeechLoaderOptions& options)
      : speech_(speech), loader_(reader, options) {}

  const Batch* next() override {
    fill(batch_, loader_.next(), speech_.sample()[0], speech_.most_labels());
    return &batch_;
  }

 private:
  const Speech& speech_;
  SpeechLoader loader_;
  Batch batch_;
};

class EvaluationSpeech final : public Batches {
 public:
  EvaluationSpeech(const Speech& speech, const SpeechReader& reader, OnBadExample on_bad_example,
                   const PrefetchOptions& prefetch)
      : speech_(speech), loader_(reader, speech.sample()[0], on_bad_example, prefetch) {}

  const Batch* next() override {
    const SpeechBatch* const from = loader_.next();
    if (from == nullptr) return end();
    any_ = true;
    fill(batch_, *from, speech_.sample()[0], speech_.most_labels());
    tell_bad_batches();
    return &batch_;
  }

 private:
  // Those that had nothing else in them, and so were passed over.
  void tell_bad_batches() {
    const std::vector<std::string>& all = loader_.bad_batches();
    batch_.bad_examples.insert(batch_.bad_examples.end(), all.begin() + told_, all.end());
    told_ = std::ssize(all);
  }

  const Batch* end() {
    const std::vector<std::string>& bad = loader_.bad_batches();
    if (!any_) {
      throw_user_error("data: not one of {} utterances can be read; of the first: {}", speech_.size(),
                       bad.empty() ? "nothing is known" : bad.front());
    }
    if (told_ == std::ssize(bad)) return nullptr;
    SpeechBatch nobody;
    nobody.frames = 1;
    nobody.features = speech_.sample()[1];
    fill(batch_, nobody, speech_.sample()[0], speech_.most_labels());
    tell_bad_batches();
    return &batch_;
  }

  const Speech& speech_;
  SpeechEvalLoader loader_;
  Batch batch_;
  bool any_ = false;
  std::ptrdiff_t told_ = 0;  // of loader_.bad_batches()
};

}  // namespace

Speech::Speech(std::unique_ptr<const SpeechCorpus> corpus, const SpeechOptions& options)
    : corpus_(std::move(corpus)), options_(options), alphabet_(options.alphabet), reader_(*corpus_, options.reader) {
  DGC_CHECK(options.streams >= 1, "utterances of a batch");
  for (int64_t i = 0; i < corpus_->size(); ++i) most_labels_ = std::max(most_labels_, std::ssize(corpus_->labels(i)));
}

std::vector<Trait> Speech::traits() const {
  return {{"alphabet", options_.alphabet}, {"number of features", fmt::format("{}", reader_.features())}};
}

std::vector<Trait> Speech::fingerprint() const {
  uint64_t sum = 0;
  for (int64_t i = 0; i < size(); ++i) {
    const Utterance& u = corpus_->utterance(i);
    sum = XXH64(u.text.data(), u.text.size(), sum);
    sum = XXH64(&u.seconds, sizeof(u.seconds), sum);
  }
  return {{"its number of utterances", fmt::format("{}", size())},
          {"a checksum of its transcripts and their lengths", fmt::format("{:016x}", sum)}};
}

std::vector<std::string> Speech::remarks() const {
  const std::vector<std::string>& skipped = corpus_->skipped();
  if (skipped.empty()) return {};
  return {fmt::format("{} utterances are left out; the first: {}", skipped.size(), skipped.front())};
}

std::unique_ptr<Batches> Speech::training_batches(const LoaderOptions& o) const {
  DGC_CHECK(o.sampling.batch_per_worker == options_.streams, "a worker's utterances are its streams");
  return std::make_unique<TrainingSpeech>(
      *this, reader_,
      SpeechLoaderOptions{.sampling = o.sampling,
                          .buckets = options_.buckets,
                          .workers = {o.first_worker, o.local_workers, o.start_step},
                          .on_bad_example = options_.on_bad_example,
                          .prefetch = o.prefetch});
}

std::unique_ptr<Batches> Speech::evaluation_batches(int64_t, const PrefetchOptions& prefetch) const {
  return std::make_unique<EvaluationSpeech>(*this, reader_, options_.on_bad_example, prefetch);
}

}  // namespace dgc
