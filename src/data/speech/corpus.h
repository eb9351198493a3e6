#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/speech/options.h"
#include "data/speech/utterances.h"

namespace dgc {

// Utterances with labels, from the shortest to the longest (by path where lengths are equal). Recordings whose length
// is listed must be there; others are opened once, for their header, and read where the header does not say it. Safe to
// use from several threads.
class SpeechCorpus {
 public:
  // An utterance whose transcript or header cannot be used, or that is shorter than a window of the features, is left
  // out or, with OnBadExample::refuse, thrown as BadExample, the first one in the list's order. Throws UserError when
  // no utterance is left, and as the constructor of Alphabet does. threads: of those that look up the recordings'
  // lengths.
  SpeechCorpus(std::vector<Utterance>, const SpeechOptions&, int threads = 1);

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
