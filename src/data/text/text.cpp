#include "data/text/text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "tensor/counted.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Streams that lie side by side in a batch: stream s reads words[s * length], ... and predicts the word after each.
struct Streams {
  const std::vector<int32_t>& words;
  int64_t length;
  int64_t first, count;
};

void read(Batch& batch, const Streams& streams, int64_t first_row, int64_t rows) {
  batch.tokens.resize(static_cast<size_t>(rows * streams.count));
  batch.labels.resize(batch.tokens.size());
  size_t to = 0;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    for (int64_t s = streams.first; s < streams.first + streams.count; ++s, ++to) {
      const auto word = static_cast<size_t>(s * streams.length + row);
      batch.tokens[to] = streams.words[word];
      batch.labels[to] = streams.words[word + 1];
    }
  }
}

class TrainingText final : public BatchSource {
 public:
  TrainingText(const Text& text, const WorkerBatches& workers)
      : text_(text), workers_(workers), steps_per_epoch_(text.steps_per_epoch(workers.sampling)) {}

  int64_t count() const override { return kEndless; }

  void fill(int64_t number, int, Batch& batch, const std::stop_token&) override {
    const Sampling& sampling = workers_.sampling;
    const auto [step, worker] = workers_.place(number);
    const int64_t streams = text_.sample()[0], rows = sampling.batch_per_worker;
    batch.step = step;
    batch.worker = worker;
    read(batch,
         {.words = text_.words(),
          .length = text_.rows() / sampling.workers,
          .first = worker * streams,
          .count = streams},
         step % steps_per_epoch_ * rows, rows);
  }

 private:
  const Text& text_;
  WorkerBatches workers_;
  int64_t steps_per_epoch_;
};

class EvaluationText final : public BatchSource {
 public:
  EvaluationText(const Text& text, int64_t rows) : text_(text), rows_(rows) { DGC_CHECK(rows >= 1, "batch size"); }

  int64_t count() const override { return (text_.rows() + rows_ - 1) / rows_; }

  void fill(int64_t number, int, Batch& batch, const std::stop_token&) override {
    const int64_t first = number * rows_;
    batch.step = number;
    read(batch, {.words = text_.words(), .length = text_.rows(), .first = 0, .count = text_.sample()[0]}, first,
         std::min(rows_, text_.rows() - first));
  }

 private:
  const Text& text_;
  int64_t rows_;
};

}  // namespace

Text::Text(const TextOptions& options, const Vocabulary& vocabulary)
    : file_(options.file), streams_(options.streams), classes_(vocabulary.size()) {
  DGC_CHECK(streams_ >= 1, "streams of a text");
  read_words(file_, [&](std::string_view word) { words_.push_back(vocabulary.number(word)); });
  const bool cut = options.limit && std::ssize(words_) > *options.limit;
  if (cut) words_.resize(static_cast<size_t>(*options.limit));
  const char* const streams_key = options.trains ? "training.batch_per_worker" : "data.eval_streams";
  const std::string words = counted(std::ssize(words_), "word"), streams = counted(streams_, "stream");
  if (rows() == 0 && cut) {
    throw_user_error("{}: {}, all that {} leaves of it, cannot fill {}; raise it, or lower {}", file_.path, words,
                     options.trains ? "data.train_limit" : "data.test_limit", streams, streams_key);
  }
  if (rows() == 0) {
    throw_user_error("{}: {} cannot fill {}; set {} to a longer text, or lower {}", file_.path, words, streams,
                     file_.key, streams_key);
  }
  cut_ = cut;
  const int32_t unknown = vocabulary.number(kUnknownWord), end = vocabulary.number(kEndOfLine);
  const auto unknowns = std::ranges::count(words_, unknown);
  unknown_ = static_cast<double>(unknowns) / static_cast<double>(words_.size());
  if (options.trains && unknowns > 0 && unknowns + std::ranges::count(words_, end) == std::ssize(words_)) {
    throw_user_error(
        "{}: none of its words is in the vocabulary, which was made of other texts or has too few words; words are "
        "compared letter by letter, capitals included",
        file_.path);
  }
}

std::vector<std::string> Text::remarks() const {
  constexpr double kMany = 0.2;  // the usual texts have 2 to 7 %
  if (unknown_ < kMany) return {};
  return {fmt::format("{}: {:.0f} % of its words count as {}, which makes the perplexity low and says little",
                      file_.path, 100 * unknown_, kUnknownWord)};
}

std::vector<Trait> Text::fingerprint() const {
  const uint64_t sum = XXH64(words_.data(), words_.size() * sizeof(int32_t), 0);
  return {{"its number of words", fmt::format("{}", words_.size())},
          {"a checksum of its words", fmt::format("{:016x}", sum)}};
}

// A remainder of rows that does not fill a step is left out.
int64_t Text::steps_per_epoch(const Sampling& sampling) const {
  const int64_t steps = rows() / sampling.workers / sampling.batch_per_worker;
  if (steps > 0) return steps;
  throw_user_error(
      "{}: one step of {} with {} of {} each needs {}, and the one after them, but {} {}; {}, or lower "
      "training.batch_per_worker or data.bptt",
      file_.path, counted(sampling.workers, "batch", "batches"), counted(streams_, "stream"),
      counted(sampling.batch_per_worker, "word"),
      counted(sampling.workers * streams_ * sampling.batch_per_worker, "word"),
      cut_ ? "data.train_limit leaves" : "the text has", words_.size(), cut_ ? "raise it" : "take a longer one");
}

std::unique_ptr<Batches> Text::training_batches(const WorkerBatches& workers, const PrefetchOptions& options) const {
  return std::make_unique<Batches>(std::make_unique<TrainingText>(*this, workers), options);
}

std::unique_ptr<Batches> Text::evaluation_batches(const EvaluationBatches& batches,
                                                  const PrefetchOptions& options) const {
  DGC_CHECK(batches.first == 0 && batches.every == 1, "a text's streams run through all batches");
  return std::make_unique<Batches>(std::make_unique<EvaluationText>(*this, batches.rows), options);
}

}  // namespace dgc
