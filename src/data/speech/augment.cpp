#include "data/speech/augment.h"

#include <algorithm>
#include <cmath>

namespace dgc {
namespace {

// Slots of SpeechDraw.
enum SpeechSlot : uint64_t { kTempo, kWhetherNoise, kNoiseLevel, kMasks };

// Each utterance has a stream of its own in each epoch.
uint64_t stream(const char* purpose, int64_t epoch, int64_t utterance) {
  return rng_stream(purpose, (static_cast<uint64_t>(epoch) << 32) + static_cast<uint64_t>(utterance));
}

struct Stretch {
  int64_t first = 0, count = 0;
};

// Draws `count` uniformly from 0 ... most, and `first` uniformly from the places where the stretch fits.
Stretch draw_stretch(const SpeechDraw& draw, uint64_t slot, int64_t most, int64_t size) {
  const int64_t count = draw.below(slot, static_cast<uint32_t>(std::min(most, size) + 1));
  return {draw.below(slot + 1, static_cast<uint32_t>(size - count + 1)), count};
}

}  // namespace

SpeechDraw::SpeechDraw(uint64_t seed, int64_t epoch, int64_t utterance)
    : choices_(seed, stream("augment speech", epoch, utterance)), noise_(seed, stream("noise", epoch, utterance)) {}

double draw_tempo(const SpeechAugmentOptions& o, const SpeechDraw& draw) {
  return between(o.min_tempo, o.max_tempo, draw.uniform(kTempo));
}

void add_noise(const SpeechAugmentOptions& o, const SpeechDraw& draw, std::span<float> samples) {
  if (!(static_cast<double>(draw.uniform(kWhetherNoise)) < o.noise_probability)) return;
  double power = 0;
  for (const float sample : samples) power += static_cast<double>(sample) * sample;
  power /= static_cast<double>(samples.size());
  const double decibel = between(o.min_noise_db, o.max_noise_db, draw.uniform(kNoiseLevel));
  const auto deviation = static_cast<float>(std::sqrt(power * std::pow(10.0, -decibel / 10)));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] += deviation * draw.noise(i);
}

void mask_features(const MaskOptions& o, const SpeechDraw& draw, int64_t features, std::span<float> values) {
  const int64_t frames = std::ssize(values) / features;
  const int64_t longest =
      std::min<int64_t>(o.time_frames, static_cast<int64_t>(o.time_share * static_cast<double>(frames)));
  uint64_t slot = kMasks;
  for (int64_t i = 0; i < o.time_masks; ++i, slot += 2) {
    const Stretch time = draw_stretch(draw, slot, longest, frames);
    std::fill_n(values.begin() + time.first * features, time.count * features, 0.f);
  }
  for (int64_t i = 0; i < o.feature_masks; ++i, slot += 2) {
    const Stretch feature = draw_stretch(draw, slot, o.feature_width, features);
    for (int64_t t = 0; t < frames; ++t) {
      std::fill_n(values.begin() + t * features + feature.first, feature.count, 0.f);
    }
  }
}

}  // namespace dgc
