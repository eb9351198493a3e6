#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/speech/mel.h"
#include "data/speech/spectrum.h"

namespace dgc {

enum class FeatureKind {
  spectrogram,  // log(1 + |X[k]|), one value per bin
  log_mel,      // log(1e-8 + mel-weighted |X[k]|^2)
};

// What one mean and one deviation are taken over; both of one utterance, so that evaluation needs nothing from
// training.
enum class FeatureScaling {
  utterance,  // all of its values together
  feature,    // each feature on its own, over the utterance's time
};

struct FeatureOptions {
  FeatureKind kind = FeatureKind::spectrogram;
  FeatureScaling scaling = FeatureScaling::utterance;
  int64_t sample_rate = 16000;
  double window_ms = 20.0, step_ms = 10.0;
  int64_t mels = 40;  // log_mel only
  bool operator==(const FeatureOptions&) const = default;
};

// Samples -> features, scaled to mean 0 and deviation 1. Frames lie wholly inside the samples. Not for several threads
// at once: it has scratch memory.
class FeatureExtractor {
 public:
  explicit FeatureExtractor(const FeatureOptions&);  // throws UserError for a window or step below 2 samples, or mels

  int64_t features() const;                              // in one frame
  int64_t window() const { return spectrum_.window(); }  // samples, the fewest that give a frame

  // tempo: how much quicker to speak, at the same pitch: the windows stay as they are, their steps become longer. As
  // the features hold no phases, this is all that changing the tempo of a recording would do. 1 leaves it as it is.
  int64_t frames(int64_t samples, double tempo) const;  // 0 when it is shorter than a window
  // out: [frames(...), features()], its memory is used again.
  void compute(std::span<const float> samples, double tempo, std::vector<float>& out);

 private:
  FeatureOptions options_;
  double step_;
  Spectrum spectrum_;
  std::optional<MelFilters> mel_;
  std::vector<float> power_;
};

// In place, values: [rows, columns]. What does not vary becomes 0.
void scale_features(FeatureScaling, int64_t columns, std::vector<float>& values);

}  // namespace dgc
