#include "data/speech/audio.h"

#include <samplerate.h>

#include <algorithm>
#include <cmath>

#include "data/file.h"
#include "data/speech/bad_example.h"
#include "data/speech/sound_file.h"

namespace dgc {
namespace {

[[noreturn]] void too_long(const std::string& name, const AudioOptions& o) {
  throw_bad_example("{}: it is longer than the {} s of data.max_seconds; cut it up, or raise data.max_seconds", name,
                    o.max_seconds);
}

// Reads in pieces, so that memory grows with what is there, whatever the header promises.
void read_samples(SoundFile& file, const std::string& name, const AudioOptions& o, std::vector<float>& out) {
  constexpr int64_t kPiece = 1 << 16;
  const auto most = static_cast<int64_t>(o.max_seconds * file.rate());
  out.clear();
  for (int64_t got = kPiece; got == kPiece;) {
    const size_t at = out.size();
    out.resize(at + kPiece);
    got = file.read(out.data() + at, kPiece);
    out.resize(at + static_cast<size_t>(got));
    if (std::ssize(out) > most) too_long(name, o);
  }
  if (std::ssize(out) < file.samples()) {
    throw_bad_example("{}: the file is truncated: it holds {} of {} samples; get it again", name, out.size(),
                      file.samples());
  }
  if (out.empty()) throw_bad_example("{}: the file holds no samples; remove it, or get it again", name);
  // The squares of the samples and the resampled samples must stay finite. NaN fails the comparison too.
  if (!std::all_of(out.begin(), out.end(), [](float x) { return std::fabs(x) < 1e9f; })) {
    throw_bad_example("{}: some of its samples are not finite numbers, or beyond 1e9; convert it again", name);
  }
}

void resample(const std::vector<float>& in, double ratio, std::vector<float>& out) {
  out.resize(static_cast<size_t>(std::ceil(static_cast<double>(in.size()) * ratio)) + 1);
  SRC_DATA data{};
  data.data_in = in.data();
  data.input_frames = std::ssize(in);
  data.data_out = out.data();
  data.output_frames = std::ssize(out);
  data.src_ratio = ratio;
  const int error = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1);
  DGC_CHECK(error == 0, std::string("libsamplerate: ") + src_strerror(error));
  out.resize(static_cast<size_t>(data.output_frames_gen));
}

}  // namespace

void check_rate(int rate, const std::string& name, const AudioOptions& o) {
  if (rate == o.sample_rate) return;
  if (!o.resample) {
    throw_bad_example("{}: its rate is {} Hz and data.sample_rate is {}; convert it, or set data.resample to true",
                      name, rate, o.sample_rate);
  }
  if (src_is_valid_ratio(static_cast<double>(o.sample_rate) / rate) == 0) {
    throw_bad_example("{}: its rate of {} Hz is too far from data.sample_rate, {}; convert it", name, rate,
                      o.sample_rate);
  }
}

void decode_audio(std::span<const uint8_t> bytes, const std::string& name, const AudioOptions& o, AudioScratch& scratch,
                  std::vector<float>& out) {
  SoundFile file(bytes, name);
  check_rate(file.rate(), name, o);
  if (file.seconds() > o.max_seconds) too_long(name, o);
  if (file.rate() == o.sample_rate) {
    read_samples(file, name, o, out);
  } else {
    read_samples(file, name, o, scratch.decoded);
    resample(scratch.decoded, static_cast<double>(o.sample_rate) / file.rate(), out);
    if (out.empty()) {
      throw_bad_example("{}: it is too short to be heard at {} Hz ({} samples at {} Hz); remove it", name,
                        o.sample_rate, scratch.decoded.size(), file.rate());
    }
  }
}

void read_audio(const std::string& path, const AudioOptions& o, AudioScratch& scratch, std::vector<float>& out) {
  try {
    constexpr size_t kMost = size_t{1} << 30;  // 1 GiB: an hour in 32 bits at 48 kHz takes less
    read_file(path, kMost, scratch.bytes);
  } catch (const UserError& error) {
    throw BadExample(error.what());
  }
  decode_audio(scratch.bytes, path, o, scratch, out);
}

}  // namespace dgc
