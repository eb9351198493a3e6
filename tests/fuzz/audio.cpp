// The readers of sound files, on any bytes: what comes out is samples that are finite and not too many, or a
// BadExample. libsndfile and libsamplerate are as the system has them, so their own errors show only where they stray
// far.
#include "data/speech/audio.h"

#include <cmath>

#include "data/speech/bad_example.h"
#include "tests/fuzz/input.h"

using namespace dgc;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static AudioScratch scratch;
  static std::vector<float> out;
  AudioOptions options;
  options.max_seconds = 1;
  try {
    decode_audio({data, size}, "input", options, scratch, out);
  } catch (const BadExample& error) {
    require(std::string(error.what()).starts_with("input: "));
    return 0;
  }
  require(!out.empty() && static_cast<double>(out.size()) <= options.max_seconds * options.sample_rate + 1);
  for (const float sample : out) require(std::isfinite(sample));
  return 0;
}
