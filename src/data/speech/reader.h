#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/speech/corpus.h"
#include "data/speech/options.h"

namespace dgc {

// Memory and plans that reading uses again; one for each thread. The constructor throws as FeatureExtractor's does.
struct SpeechScratch {
  explicit SpeechScratch(const SpeechOptions& o) : extractor(o.features, o.audio.sample_rate) {}

  AudioScratch audio;
  std::vector<float> samples;
  FeatureExtractor extractor;
};

// Reads the samples of a recording into `scratch`. Throws as read_audio() does, and BadExample when they are fewer than
// those of a window.
void read_recording(const std::string& path, const AudioOptions&, SpeechScratch& scratch);

// Reads the features of utterances. Safe to use from several threads that have a scratch each.
class SpeechReader {
 public:
  // The corpus must outlive the reader. Throws as FeatureExtractor's constructor does.
  SpeechReader(const SpeechCorpus&, const SpeechOptions&);

  int64_t features() const { return features_; }
  // The most frames that read() can give, with the slowest tempo: what batches must have room for.
  int64_t max_frames() const { return max_frames_; }
  int64_t frames(int64_t i) const { return frames_.at(static_cast<size_t>(i)); }  // of an utterance as it is listed

  // out: [frames, features()]. The utterance is augmented if there is a draw, and not without one (evaluation). Throws
  // BadExample when the recording cannot be used or is longer than listed.
  void read(int64_t i, const SpeechDraw*, SpeechScratch&, std::vector<float>& out) const;

 private:
  const SpeechCorpus& corpus_;
  SpeechOptions options_;
  int64_t features_, max_frames_;
  std::vector<int64_t> frames_;
};

}  // namespace dgc
