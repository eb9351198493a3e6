#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dgc {

// What all utterances are converted to.
struct AudioOptions {
  int64_t sample_rate = 16000;  // samples per second
  bool resample = true;         // files of another rate are converted; false: they are bad examples
  double max_seconds = 60.0;    // longer ones are bad examples: the longest of a batch decides its memory
  bool operator==(const AudioOptions&) const = default;
};

// Memory that reading uses again.
struct AudioScratch {
  std::vector<uint8_t> bytes;
  std::vector<float> decoded;
};

// Throws BadExample that names the file when files of this rate cannot be converted, or are not to be.
void check_rate(int rate, const std::string& name, const AudioOptions&);

// Writes the samples of a WAV, FLAC or SPHERE file to `out`, in [-1, 1] (a float file may go beyond) and at
// options.sample_rate (resampled by libsamplerate's medium sinc converter). Throws BadExample that names the file when
// it is empty, damaged, truncated, of another kind or rate, not mono or too long, or has no samples, or has samples
// that are not finite or beyond 1e9.
void decode_audio(std::span<const uint8_t> bytes, const std::string& name, const AudioOptions&, AudioScratch&,
                  std::vector<float>& out);

// Works as decode_audio(), for the file at `path`. Throws BadExample when the file cannot be read, too.
void read_audio(const std::string& path, const AudioOptions&, AudioScratch&, std::vector<float>& out);

}  // namespace dgc
