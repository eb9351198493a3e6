#pragma once

#include <string>
#include <vector>

#include "data/speech/alphabet.h"
#include "data/speech/audio.h"
#include "data/speech/augment.h"
#include "data/speech/bad_example.h"
#include "data/speech/features.h"
#include "data/speech/order.h"

namespace dgc {

// Options of all sets of recordings, whichever way these are listed.
struct SpeechOptions {
  std::vector<std::string> train{}, test{};  // librispeech: folders; speech_manifest: files; empty: the usual ones
  std::string alphabet = kEnglish;
  AudioOptions audio{};
  OnBadExample on_bad_example = OnBadExample::refuse;
  FeatureOptions features{};
  SpeechAugmentOptions augment{};  // of training
  BucketOptions buckets{};         // order of the training batches
  bool operator==(const SpeechOptions&) const = default;
};

}  // namespace dgc
