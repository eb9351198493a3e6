#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text/vocabulary.h"

namespace dgc {

struct TextOptions {
  TextFile file;
  bool trains = false;           // whether it is learnt, not only evaluated
  int64_t streams = 1;           // number of streams: of each worker in training, of all together in evaluation
  std::optional<int64_t> limit;  // read only so many words, the first ones
};

// A text in which each word is to be predicted from the words before it. N streams of equal length share the words:
// each stream begins where the stream before it ends, so that the last label of a stream is the first token of the
// next. The remaining words, fewer than N, are not read. In training there are workers x `streams` streams. Each worker
// has `streams` consecutive ones, side by side in a batch, and a step takes the next rows of each.
class Text final : public Dataset {
 public:
  // Throws UserError that names the file when it cannot be read, has no word for some stream to predict, or is to be
  // learnt and has no word of the vocabulary but the ends of its lines.
  Text(const TextOptions&, const Vocabulary&);

  int64_t size() const override { return rows() * streams_; }
  Shape sample() const override { return {streams_}; }
  int64_t classes() const override { return classes_; }
  std::vector<Trait> traits() const override { return {{"vocabulary size", std::to_string(classes_)}}; }
  std::vector<Trait> fingerprint() const override;
  std::vector<std::string> remarks() const override;  // where many words are not in the vocabulary
  int64_t rows() const override { return (static_cast<int64_t>(words_.size()) - 1) / streams_; }
  int64_t steps_per_epoch(const Sampling&) const override;
  std::unique_ptr<Batches> training_batches(const WorkerBatches&, const PrefetchOptions&) const override;
  std::unique_ptr<Batches> evaluation_batches(const EvaluationBatches&, const PrefetchOptions&) const override;

  const std::vector<int32_t>& words() const { return words_; }

 private:
  TextFile file_;
  int64_t streams_, classes_;
  bool cut_ = false;    // TextOptions::limit has left words out
  double unknown_ = 0;  // share of words that count as kUnknownWord
  std::vector<int32_t> words_;
};

}  // namespace dgc
