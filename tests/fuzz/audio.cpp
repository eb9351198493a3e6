// The readers of sound files, on any bytes: what comes out is samples that are finite and not too many, or a
// BadExample. libsndfile and libsamplerate are as the system has them, so their own errors show only where they stray
// far. The corpus begins with a good file of each kind, which libFuzzer would hardly find.
#include "data/audio.h"

#include <sndfile.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "data/bad_example.h"

using namespace dgc;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void write_good(const std::string& path, int format, int rate) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = 1;
  info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  require(file != nullptr);
  std::vector<float> samples(200);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = 0.5f * std::sin(0.3f * static_cast<float>(i));
  sf_write_float(file, samples.data(), static_cast<sf_count_t>(samples.size()));
  sf_close(file);
}

}  // namespace

// The last argument is the corpus; a finding that is tried again is a file.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = (*argv)[*argc - 1];
  if (!std::filesystem::is_directory(corpus)) return 0;
  write_good(corpus + "/pcm", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000);
  write_good(corpus + "/float", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000);
  write_good(corpus + "/adpcm", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 16000);
  write_good(corpus + "/flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100);
  write_good(corpus + "/sphere", SF_FORMAT_NIST | SF_FORMAT_PCM_16, 16000);
  write_good(corpus + "/ulaw", SF_FORMAT_NIST | SF_FORMAT_ULAW, 8000);
  return 0;
}

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
