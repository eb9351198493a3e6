// The readers of sound files, on any bytes: what comes out is samples that are finite and not too many, or a
// BadExample. libsndfile and libsamplerate are as the system has them, so their own errors show only where they stray
// far; libFuzzer begins with a good file of each kind, which its inputs would hardly find.
#include "data/audio.h"

#include <sndfile.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "data/bad_example.h"

using namespace dgc;

namespace {

AudioOptions options() {
  AudioOptions o;
  o.max_seconds = 1;
  return o;
}

void require(bool condition) {
  if (!condition) std::abort();
}

struct Writer {
  std::vector<uint8_t> bytes;
  size_t at = 0;
};

SF_VIRTUAL_IO writer_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* w) { return static_cast<sf_count_t>(static_cast<Writer*>(w)->bytes.size()); };
  io.tell = [](void* w) { return static_cast<sf_count_t>(static_cast<Writer*>(w)->at); };
  io.seek = [](sf_count_t offset, int whence, void* w) {
    auto& writer = *static_cast<Writer*>(w);
    const size_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? writer.at : writer.bytes.size();
    writer.at = base + static_cast<size_t>(offset);
    return static_cast<sf_count_t>(writer.at);
  };
  io.read = [](void*, sf_count_t, void*) { return sf_count_t{0}; };
  io.write = [](const void* from, sf_count_t count, void* w) {
    auto& writer = *static_cast<Writer*>(w);
    if (writer.bytes.size() < writer.at + static_cast<size_t>(count)) writer.bytes.resize(writer.at + count);
    std::memcpy(writer.bytes.data() + writer.at, from, static_cast<size_t>(count));
    writer.at += static_cast<size_t>(count);
    return count;
  };
  return io;
}

std::vector<uint8_t> good_file(int format, int rate) {
  Writer writer;
  SF_VIRTUAL_IO io = writer_io();
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = 1;
  info.format = format;
  SNDFILE* file = sf_open_virtual(&io, SFM_WRITE, &info, &writer);
  require(file != nullptr);
  std::vector<float> samples(200);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = 0.5f * std::sin(0.3f * static_cast<float>(i));
  sf_write_float(file, samples.data(), static_cast<sf_count_t>(samples.size()));
  sf_close(file);
  return writer.bytes;
}

}  // namespace

// A fresh input becomes a good file now and then; the rest is libFuzzer's own.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  static const std::vector<uint8_t> files[] = {
      good_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000),    good_file(SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000),
      good_file(SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 16000), good_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100),
      good_file(SF_FORMAT_NIST | SF_FORMAT_PCM_16, 16000),   good_file(SF_FORMAT_NIST | SF_FORMAT_ULAW, 8000)};
  const std::vector<uint8_t>& file = files[seed / 64 % 6];
  if ((size < 12 || seed % 64 == 0) && file.size() <= most) {
    std::memcpy(data, file.data(), file.size());
    size = file.size();
  }
  return LLVMFuzzerMutate(data, size, most);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static AudioScratch scratch;
  static std::vector<float> out;
  const AudioOptions o = options();
  try {
    decode_audio({data, size}, "input", o, scratch, out);
  } catch (const BadExample& error) {
    require(std::string(error.what()).starts_with("input: "));
    return 0;
  }
  require(!out.empty() && static_cast<double>(out.size()) <= o.max_seconds * o.sample_rate + 1);
  for (const float sample : out) require(std::isfinite(sample));
  return 0;
}
