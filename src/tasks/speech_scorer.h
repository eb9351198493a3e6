#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/speech/speech.h"
#include "decode/error_rate.h"
#include "decode/scores.h"
#include "decode/word_model.h"
#include "kernels/backend.h"

namespace dgc {

// How a speech model's output becomes text.
struct DecodingOptions {
  int64_t beam = 1;               // prefixes kept; 1: greedy, the likeliest alignment
  std::filesystem::path words{};  // a word n-gram model in ARPA's format, also gzipped; empty: none
  double word_weight = 1;         // of its log probability
  double word_bonus = 0;          // for each word
};

class SpeechDecoder {
 public:
  // Throws UserError for a word model without a beam, or one that cannot be read.
  SpeechDecoder(const Alphabet&, const DecodingOptions&);

  std::string text(const FrameScores& logits) const;

 private:
  const Alphabet& alphabet_;
  DecodingOptions options_;
  std::optional<WordModel> words_;
};

// The logits of a batch [steps, streams, classes] on the host, and where each utterance's are.
class HostLogits {
 public:
  // Of a network's output. frames: of one step.
  void take(Backend&, ConstView output, int64_t frames_per_step);
  FrameScores of(int64_t stream, int64_t frames) const;

 private:
  Shape shape_;
  int64_t frames_per_step_ = 1;
  Buffer converted_;
  std::vector<float> values_;
};

// Compares what a network hears with what was said.
class SpeechScorer {
 public:
  using Told = std::function<void(const std::string& reference, const std::string& heard)>;

  // told, if any, gets the texts of each utterance, from the shortest.
  SpeechScorer(const Speech&, int64_t frames_per_step, const DecodingOptions& = {}, Told told = {});

  void start() { words_ = characters_ = {}; }
  void add(Backend&, const Batch&, ConstView output);
  const EditCount& words() const { return words_; }
  const EditCount& characters() const { return characters_; }

 private:
  const Speech& speech_;
  int64_t frames_per_step_;
  SpeechDecoder decoder_;
  Told told_;
  HostLogits logits_;
  EditCount words_, characters_;
};

}  // namespace dgc
