#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/speech/speech.h"
#include "decode/scores.h"
#include "decode/word_model.h"
#include "kernels/backend.h"
#include "tasks/task.h"

namespace dgc {

class SpeechDecoder {
 public:
  // Throws UserError for a word model without a beam, one that cannot be read, and one of whose words the alphabet can
  // write none, or cannot tell where they end.
  SpeechDecoder(const Alphabet&, const DecodingOptions&);

  std::string text(const FrameScores& logits) const;

 private:
  const Alphabet& alphabet_;
  DecodingOptions options_;
  std::optional<WordModel> words_;
};

// Throws UserError where no utterance has enough steps of the network for its transcript, so that the loss of the set
// would be one of nothing. `set` names it: "test".
void require_fitting_utterance(const Speech&, const Network&, const std::string& set);

// A sentence that counts the utterances which are too short for their transcripts, and names the first ones; "": none.
std::string remark_on_short_utterances(const Speech&, const Network&, const std::string& set);

// The logits of a batch [steps, streams, classes] on the host, by utterance.
class HostLogits {
 public:
  // Copies a network's output to the host.
  void take(Backend&, ConstView output, int64_t frames_per_step);
  FrameScores of(int64_t stream, int64_t frames) const;

 private:
  Shape shape_;
  int64_t frames_per_step_ = 1;
  Buffer converted_;
  std::vector<float> values_;
};

// Compares what a network hears with what was said.
class SpeechScorer final : public Scorer {
 public:
  // Data and network must outlive the scorer. Throws UserError as SpeechDecoder does, and as
  // require_fitting_utterance() does.
  SpeechScorer(const Speech&, const Network&, Split, const ScoringOptions&);

  Counts count(Backend&, const Batch&, ConstView output, const LossStats&) override;
  // The mean loss is that of the utterances that are long enough for their transcripts. Throws UserError where no
  // utterance could be read.
  Measures measures(const Counts& sums, const std::vector<std::string>& left_out) const override;

 private:
  const Speech& speech_;
  Split split_;
  int64_t frames_per_step_;
  SpeechDecoder decoder_;
  ScoringOptions options_;
  HostLogits logits_;
};

}  // namespace dgc
