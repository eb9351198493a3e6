#pragma once

#include <cstdint>
#include <vector>

#include "data/speech/alphabet.h"
#include "decode/scores.h"
#include "decode/word_model.h"

namespace dgc {

struct BeamOptions {
  int64_t width = 64;  // prefixes kept after each frame
  // Classes of a frame that are this much less likely (natural log) than its best one are not tried, but for the blank.
  double class_margin = 12.0;
  const WordModel* words = nullptr;  // null: the network alone decides
  double word_weight = 1.0;          // weight of the word model's log probability
  double word_bonus = 0.0;           // added for each word, as a model makes long texts ever less likely
};

struct BeamResult {
  std::vector<int32_t> labels;
  double score = 0;  // ln P_ctc(labels) + word_weight * ln P_words(text) + word_bonus * words, as far as the beam saw
};

// The likeliest labels, summed over alignments, by prefix beam search (Hannun, Maas, Jurafsky, Ng, "First-pass large
// vocabulary continuous speech recognition using bi-directional recurrent DNNs", 2014, algorithm 1). A word is scored
// when a space ends it; the last word and the sentence's end are scored after the last frame. With a word model, spaces
// at the beginning or after another space are not tried.
BeamResult beam_decode(const FrameScores&, const Alphabet&, const BeamOptions&);

}  // namespace dgc
