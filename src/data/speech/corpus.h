#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/speech/alphabet.h"
#include "data/speech/audio.h"
#include "data/speech/bad_example.h"
#include "data/speech/utterances.h"

namespace dgc {

struct SpeechCorpusOptions {
  AudioOptions audio;
  double min_seconds = 0.02;  // length of a feature window; shorter utterances are bad examples
  OnBadExample on_bad_example = OnBadExample::refuse;
  int threads = 1;  // threads that look up the recordings' lengths
};

// Utterances with labels, from the shortest to the longest (by path where lengths are equal). Recordings whose length
// is not listed are opened once, for their header, and read where the header does not say it. Safe to use from several
// threads.
class SpeechCorpus {
 public:
  // An utterance whose transcript or header cannot be used is left out or, with OnBadExample::refuse, thrown as
  // BadExample, the first one in the list's order. Throws UserError when no utterance is left.
  SpeechCorpus(std::vector<Utterance>, const Alphabet&, const SpeechCorpusOptions&);

  int64_t size() const { return static_cast<int64_t>(examples_.size()); }
  const Utterance& utterance(int64_t i) const { return examples_.at(static_cast<size_t>(i)).utterance; }
  std::span<const int32_t> labels(int64_t i) const { return examples_.at(static_cast<size_t>(i)).labels; }
  double longest_seconds() const { return examples_.back().utterance.seconds; }
  // A sentence for each utterance that was left out.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct Example {
    Utterance utterance;
    std::vector<int32_t> labels;
  };
  std::vector<Example> examples_;
  std::vector<std::string> skipped_;
};

}  // namespace dgc
