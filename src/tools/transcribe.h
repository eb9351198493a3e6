#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tasks/speech_scorer.h"

namespace dgc {

struct TranscribeOptions {
  std::vector<std::string> overrides{};  // changes to the run's config, as for `dgc train --set`
  DecodingOptions decoding{};
};

// Transcribes recordings (WAV, FLAC or SPHERE), one after another, with the newest good checkpoint of a speech model's
// run. told() gets each text, which may be empty. Throws UserError when the run is of another kind or has no
// checkpoint, and, as for_each_file() does, for recordings that cannot be used.
void transcribe(const std::filesystem::path& run, const std::vector<std::string>& files, const TranscribeOptions&,
                const std::function<void(const std::string& file, const std::string& text)>& told);

}  // namespace dgc
