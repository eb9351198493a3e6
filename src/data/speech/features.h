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

// The values that share one mean and one deviation. They are values of one utterance, so that evaluation needs nothing
// from training.
enum class FeatureScaling {
  utterance,  // all values of the utterance together
  feature,    // each feature on its own, over the utterance's time
};

struct FeatureOptions {
  FeatureKind kind = FeatureKind::spectrogram;
  FeatureScaling scaling = FeatureScaling::utterance;
  double window_ms = 20.0, step_ms = 10.0;
  int64_t mels = 40;  // log_mel only
  bool operator==(const FeatureOptions&) const = default;
};

// Computes features from samples, scaled to mean 0 and deviation 1. Frames lie wholly inside the samples. Not safe to
// use from several threads at once, because of its scratch memory.
class FeatureExtractor {
 public:
  // sample_rate: in Hz. Throws KeyError for a window or step below 2 samples, or for mel filters that see no
  // frequency.
  FeatureExtractor(const FeatureOptions&, int64_t sample_rate);

  int64_t features() const;                              // in one frame
  int64_t window() const { return spectrum_.window(); }  // samples of a window, the fewest that give a frame

  // tempo: the factor by which speech becomes quicker, at the same pitch. Windows stay as they are and steps between
  // them become longer, which has the effect of another tempo because features hold no phases. 1 changes nothing.
  int64_t frames(int64_t samples, double tempo) const;  // 0 if there are fewer samples than in a window
  // out: [frames(...), features()], whose memory is used again.
  void compute(std::span<const float> samples, double tempo, std::vector<float>& out);

 private:
  FeatureOptions options_;
  double step_;
  Spectrum spectrum_;
  std::optional<MelFilters> mel_;
  std::vector<float> power_;
};

// Scales values [rows, columns] to mean 0 and deviation 1, in place. Values that do not vary become 0.
void scale_features(FeatureScaling, int64_t columns, std::vector<float>& values);

}  // namespace dgc
