#pragma once

#include <memory>

#include "config/options.h"
#include "data/speech/speech.h"
#include "models/network.h"

// From a speech model's config options to objects.
namespace dgc {

AudioOptions audio_options(const Config&);
FeatureOptions feature_options(const Config&);

// Opens the recordings' lists and headers. Throws UserError that names the file and what is wrong with it.
std::unique_ptr<Speech> make_speech(const Config&, Split);

// A row of its batches, without opening it: [streams, features].
Shape speech_sample(const Config&, int64_t streams);
// Of an utterance of data.max_seconds; in training, at the slowest tempo.
int64_t most_frames(const Config&, Split);

// For a speech_sample(). Throws UserError where the convolutions do not fit the features.
Network make_speech_network(const SpeechModelOptions&, const Shape& sample);

}  // namespace dgc
