#pragma once

#include <cstdint>
#include <span>

#include "tensor/rng.h"

namespace dgc {

// Rectangles of a spectrogram that are set to 0, its mean (Park et al., "SpecAugment", 2019, without time warping).
struct MaskOptions {
  int64_t time_masks = 0, time_frames = 0;       // masks of up to time_frames frames each
  double time_share = 1.0;                       // largest share of the utterance in one mask
  int64_t feature_masks = 0, feature_width = 0;  // masks of up to feature_width neighbouring features each
  bool operator==(const MaskOptions&) const = default;
};

// What training does to an utterance; evaluation never does. The defaults change nothing.
struct SpeechAugmentOptions {
  double noise_probability = 0;                     // probability of white noise
  double min_noise_db = 10.0, max_noise_db = 30.0;  // noise power, below the utterance's own
  double min_tempo = 1.0, max_tempo = 1.0;
  MaskOptions mask;
  bool operator==(const SpeechAugmentOptions&) const = default;
};

// The random numbers of one utterance in one epoch: a pure function of (seed, epoch, utterance).
class SpeechDraw {
 public:
  SpeechDraw(uint64_t seed, int64_t epoch, int64_t utterance);

  float uniform(uint64_t slot) const { return choices_.uniform(slot); }
  uint32_t below(uint64_t slot, uint32_t n) const { return choices_.below(slot, n); }
  float noise(uint64_t sample) const { return noise_.normal(sample); }

 private:
  Philox choices_, noise_;
};

double draw_tempo(const SpeechAugmentOptions&, const SpeechDraw&);
void add_noise(const SpeechAugmentOptions&, const SpeechDraw&, std::span<float> samples);
// values: [frames, features].
void mask_features(const MaskOptions&, const SpeechDraw&, int64_t features, std::span<float> values);

}  // namespace dgc
