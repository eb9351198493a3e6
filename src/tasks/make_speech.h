#pragma once

#include <memory>

#include "config/options.h"
#include "data/speech/speech.h"

// Makes objects from the options of a speech model's data.
namespace dgc {

// Opens the recordings' lists and headers. Throws UserError that names the file and what is wrong with it.
std::unique_ptr<Speech> make_speech(const Config&, Split);

// The shape of a batch's row, known without opening the data: [streams, features].
Shape speech_sample(const Config&, int64_t streams);
// Frames of an utterance of data.max_seconds, in training at the slowest tempo.
int64_t most_frames(const Config&, Split);

}  // namespace dgc
