#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/speech/options.h"
#include "data/speech/reader.h"

namespace dgc {

// Recordings and the characters that a model is to hear in them. A batch is the frames of some utterances of about one
// length, side by side and padded to the longest; its rows are steps of time, so their number differs from batch to
// batch.
class Speech final : public Dataset {
 public:
  // streams: utterances side by side in a batch. Throws as the constructors of Alphabet and FeatureExtractor do.
  Speech(std::unique_ptr<const SpeechCorpus>, const SpeechOptions&, int64_t streams);

  int64_t size() const override { return corpus_->size(); }
  Shape sample() const override { return {streams_, reader_.features()}; }
  int64_t classes() const override { return alphabet_.classes(); }
  int64_t rows() const override { return reader_.max_frames(); }  // rows of the longest batch
  int64_t most_labels() const override { return most_labels_; }
  std::vector<Trait> traits() const override;
  std::vector<Trait> fingerprint() const override;
  std::vector<std::string> remarks() const override;
  int64_t steps_per_epoch(const Sampling& sampling) const override { return sampling.steps_per_epoch(); }
  // The batches depend neither on the number of threads nor on where the rank started. A neighbour in length takes the
  // place of an utterance that cannot be read and is skipped.
  std::unique_ptr<Batches> training_batches(const WorkerBatches&, const PrefetchOptions&) const override;
  // The batches go from the shortest utterance to the longest. One whose utterances are all skipped has none.
  std::unique_ptr<Batches> evaluation_batches(const EvaluationBatches&, const PrefetchOptions&) const override;

  const Alphabet& alphabet() const { return alphabet_; }
  const SpeechCorpus& corpus() const { return *corpus_; }
  int64_t frames(int64_t i) const { return reader_.frames(i); }

 private:
  class Source;
  class TrainingSource;
  class EvaluationSource;

  std::unique_ptr<const SpeechCorpus> corpus_;
  SpeechOptions options_;
  int64_t streams_;
  Alphabet alphabet_;
  SpeechReader reader_;
  int64_t most_labels_ = 0;
};

}  // namespace dgc
