#include "data/speech/speech.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "tensor/counted.h"

namespace dgc {

class Speech::Source : public BatchSource {
 public:
  Source(const Speech& speech, BatchPlans plans, const PrefetchOptions& prefetch)
      : speech_(speech), plans_(std::move(plans)) {
    for (int i = 0; i < prefetch.threads; ++i) scratch_.emplace_back(speech.options_);
  }

  int64_t count() const final { return plans_.count; }

  void fill(int64_t number, int thread, Batch& batch, const std::stop_token& stop) final {
    const BatchPlan plan = plans_.plan(number);
    const auto streams = static_cast<size_t>(speech_.streams_);
    batch.step = plan.step;
    batch.worker = plan.worker;
    batch.values.assign(streams * features(), 0.f);  // at least one frame, even if there is no utterance
    batch.labels.assign(streams * label_row(), 0);
    batch.lengths.assign(streams, 0);
    batch.samples.clear();
    batch.bad_examples.clear();
    for (const int32_t utterance : plan.samples) {
      if (stop.stop_requested()) return;
      if (!add(plan, utterance, thread, batch)) make_up_for(plan, utterance, thread, batch);
    }
  }

 protected:
  // Puts an utterance into the next stream. Returns false if the utterance cannot be read and is skipped;
  // batch.bad_examples has the reason.
  bool add(const BatchPlan& plan, int64_t utterance, int thread, Batch& batch) {
    Scratch& scratch = scratch_[static_cast<size_t>(thread)];
    std::optional<SpeechDraw> draw;
    if (plan.augment_seed) draw.emplace(*plan.augment_seed, plan.epoch, utterance);
    try {
      speech_.reader_.read(utterance, draw ? &*draw : nullptr, scratch.reading, scratch.frames);
    } catch (const BadExample& error) {
      if (speech_.options_.on_bad_example == OnBadExample::refuse) throw;
      batch.bad_examples.emplace_back(error.what());
      return false;
    }
    put(utterance, scratch.frames, batch);
    return true;
  }

  const SpeechCorpus& corpus() const { return speech_.corpus(); }

 private:
  struct Scratch {
    explicit Scratch(const SpeechOptions& options) : reading(options) {}
    SpeechScratch reading;
    std::vector<float> frames;  // [frames, features] of one utterance
  };

  size_t features() const { return static_cast<size_t>(speech_.reader_.features()); }
  size_t label_row() const { return 1 + static_cast<size_t>(speech_.most_labels_); }

  // Called after `utterance` has been skipped.
  virtual void make_up_for(const BatchPlan&, int64_t utterance, int thread, Batch&) = 0;

  void put(int64_t utterance, const std::vector<float>& frames, Batch& batch) const {
    const size_t stream = batch.samples.size(), length = frames.size() / features();
    const size_t row = batch.lengths.size() * features();
    batch.values.resize(std::max(batch.values.size(), length * row));
    for (size_t t = 0; t < length; ++t) {
      std::copy_n(frames.data() + t * features(), features(), batch.values.data() + t * row + stream * features());
    }
    batch.lengths[stream] = static_cast<int32_t>(length);
    const auto labels = corpus().labels(utterance);
    int32_t* const to = batch.labels.data() + stream * label_row();
    *to = static_cast<int32_t>(labels.size());
    std::copy(labels.begin(), labels.end(), to + 1);
    batch.samples.push_back(static_cast<int32_t>(utterance));
  }

  const Speech& speech_;
  BatchPlans plans_;
  std::vector<Scratch> scratch_;  // one for each thread
};

// The next shorter utterance that can be read, or else the next longer, takes the place of a skipped one, so that
// batches keep their size.
class Speech::TrainingSource final : public Source {
 public:
  using Source::Source;

 private:
  static constexpr int64_t kMostTries = 100;  // neighbours in a row that cannot be read

  void make_up_for(const BatchPlan& plan, int64_t utterance, int thread, Batch& batch) override {
    const size_t sentences = batch.bad_examples.size();
    bool found = false;
    int64_t tries = 0;
    for (int64_t i = utterance - 1; !found && i >= 0 && tries < kMostTries; --i, ++tries) {
      found = add(plan, i, thread, batch);
    }
    for (int64_t i = utterance + 1; !found && i < corpus().size() && tries < kMostTries; ++i, ++tries) {
      found = add(plan, i, thread, batch);
    }
    batch.bad_examples.resize(sentences);  // bad neighbours are reported when their own turn comes
    if (found) return;
    throw_user_error("{}{}", batch.bad_examples.back(),
                     tries == 0 ? "" : fmt::format("; nor can {} of about its length be read", tries));
  }
};

// A batch is smaller if utterances are skipped.
class Speech::EvaluationSource final : public Source {
 public:
  using Source::Source;

 private:
  void make_up_for(const BatchPlan&, int64_t, int, Batch&) override {}
};

Speech::Speech(std::unique_ptr<const SpeechCorpus> corpus, const SpeechOptions& options, int64_t streams)
    : corpus_(std::move(corpus)),
      options_(options),
      streams_(streams),
      alphabet_(options.alphabet),
      reader_(*corpus_, options) {
  DGC_CHECK(streams >= 1, "utterances of a batch");
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
  return {fmt::format("{} left out; the first: {}", counted(std::ssize(skipped), "utterance"), skipped.front())};
}

std::unique_ptr<Batches> Speech::training_batches(const WorkerBatches& workers, const PrefetchOptions& options) const {
  const Sampling& sampling = workers.sampling;
  DGC_CHECK(sampling.batch_per_worker == streams_, "a worker's utterances are its streams");
  DGC_CHECK(sampling.samples == size(), "samples of the corpus");
  const auto order = [sampling, buckets = options_.buckets](int64_t epoch) {
    return bucketed_order(sampling, buckets, epoch);
  };
  auto plans = training_plans(workers, std::make_shared<const Sampler>(sampling, order));
  return std::make_unique<Batches>(std::make_unique<TrainingSource>(*this, std::move(plans), options), options);
}

std::unique_ptr<Batches> Speech::evaluation_batches(const EvaluationBatches& batches,
                                                    const PrefetchOptions& options) const {
  auto plans = evaluation_plans(size(), {.rows = streams_, .first = batches.first, .every = batches.every});
  return std::make_unique<Batches>(std::make_unique<EvaluationSource>(*this, std::move(plans), options), options);
}

}  // namespace dgc
