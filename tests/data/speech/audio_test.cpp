#include "data/speech/audio.h"

#include <sys/stat.h>

#include <algorithm>

#include "data/speech/bad_example.h"
#include "data/speech/sound_file.h"
#include "tensor/rng.h"
#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

std::vector<float> read(const std::string& path, const AudioOptions& options = {}) {
  AudioScratch scratch;
  std::vector<float> out;
  read_audio(path, options, scratch, out);
  return out;
}

// What the BadExample of reading the file says; it begins with the file's name.
std::string complaint(const std::string& path, const AudioOptions& options = {}) {
  try {
    read(path, options);
  } catch (const BadExample& error) {
    CHECK(std::string(error.what()).starts_with(path + ": "));
    return error.what();
  }
  FAIL("no BadExample");
  return {};
}

// libsndfile writes round(x * 32767) and reads / 32768: for |x| <= 1/2 half a step each.
constexpr float kStep16 = 1.001f / 32768;

void cut(const std::string& path, int64_t bytes) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - static_cast<size_t>(bytes));
}

TEST_CASE("audio: WAV, FLAC and SPHERE give the samples that went in") {
  const TempFolder folder;
  const std::vector<float> samples = sine(440, 16000, 1601);
  const auto [format, error] = GENERATE(table<int, float>({
      {SF_FORMAT_WAV | SF_FORMAT_PCM_16, kStep16},
      {SF_FORMAT_WAV | SF_FORMAT_PCM_24, 1e-6f},
      {SF_FORMAT_WAV | SF_FORMAT_FLOAT, 0.f},
      {SF_FORMAT_WAVEX | SF_FORMAT_PCM_16, kStep16},
      {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, kStep16},
      {SF_FORMAT_NIST | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, kStep16},
      {SF_FORMAT_NIST | SF_FORMAT_ULAW, 0.02f},
  }));
  CAPTURE(format);
  // The name says nothing: AN4's files are called .sph in one copy and .wav in another.
  const std::string path = write_sound(folder, "a.bin", samples, {16000, 1, format});
  CHECK(largest_difference(read(path), samples) <= error);
  const SoundFile header(path);
  CHECK(header.rate() == 16000);
  CHECK(header.samples() == 1601);
}

TEST_CASE("audio: a resampled tone is the tone at the other rate") {
  const TempFolder folder;
  const auto [from, to] = GENERATE(table<int, int>({{8000, 16000}, {44100, 16000}, {16000, 8000}, {22050, 16000}}));
  CAPTURE(from, to);
  const auto seconds = [](int rate) { return static_cast<size_t>(rate) / 2; };
  const std::string path =
      write_sound(folder, "tone.wav", sine(1000, from, seconds(from)), {from, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT});
  AudioOptions options;
  options.sample_rate = to;
  const std::vector<float> out = read(path, options), want = sine(1000, to, seconds(to));
  CHECK(std::abs(std::ssize(out) - std::ssize(want)) <= 1);
  // The converter's filter runs over both ends.
  float most = 0;
  for (size_t i = 200; i + 200 < std::min(out.size(), want.size()); ++i)
    most = std::max(most, std::abs(out[i] - want[i]));
  CHECK(most < 2e-4f);
}

TEST_CASE("audio: what cannot be read is named") {
  const TempFolder folder;
  const std::vector<float> samples = sine(440, 16000, 4000);
  CHECK_THAT(complaint(folder.path() + "/no.wav"), Catch::Contains("cannot open it: No such file"));
  const std::string pipe = folder.path() + "/pipe.wav";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(SoundFile(pipe), Catch::Contains("cannot open it: this is not a regular file"));
  CHECK_THAT(complaint(folder.path()), Catch::Contains("cannot read it"));
  CHECK_THAT(complaint(folder.write("empty.wav", {})), Catch::Contains("the file is empty"));
  CHECK_THAT(complaint(folder.write("text.wav", {'h', 'e', 'l', 'l', 'o'})),
             Catch::Contains("no WAV, FLAC or SPHERE file"));
  CHECK_THAT(complaint(write_sound(folder, "a.aiff", samples, {16000, 1, SF_FORMAT_AIFF | SF_FORMAT_PCM_16})),
             Catch::Contains("no WAV, FLAC or SPHERE file; convert it"));
  CHECK_THAT(complaint(write_sound(folder, "stereo.wav", samples, {16000, 2})),
             Catch::Contains("it has 2 channels; convert it to mono"));
  CHECK_THAT(complaint(write_sound(folder, "none.wav", {})), Catch::Contains("holds no samples"));
  CHECK_THAT(complaint(write_sound(folder, "click.wav", {0.5f}, {32000, 1})), Catch::Contains("too short"));
  CHECK_THAT(complaint(write_sound(folder, "slow.wav", samples, {10, 1})), Catch::Contains("10 Hz is too far from"));
  for (const float value : {NAN, -INFINITY, 3e38f, 1e9f, -2e9f}) {
    const std::string sound =
        write_sound(folder, "float.wav", {0.f, value}, {8000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT});
    CHECK_THAT(complaint(sound), Catch::Contains("not finite"));
  }

  AudioOptions options;
  options.max_seconds = 0.2;
  CHECK_THAT(
      complaint(write_sound(folder, "long.flac", samples, {16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16}), options),
      Catch::Contains("longer than the 0.2 s of data.max_seconds"));
  options.max_seconds = 0.25;
  CHECK(read(folder.path() + "/long.flac", options).size() == 4000);
  options.resample = false;
  CHECK_THAT(complaint(write_sound(folder, "rate.wav", samples, {8000, 1}), options),
             Catch::Contains("its rate is 8000 Hz and data.sample_rate is 16000") && Catch::Contains("data.resample"));
}

TEST_CASE("audio: a SPHERE file that Shorten has compressed is not called truncated") {
  const TempFolder folder;
  const auto sphere = [&](const std::string& lines, size_t bytes) {
    std::string file =
        "NIST_1A\n   1024\nchannel_count -i 1\nsample_count -i 4000\nsample_rate -i 16000\n"
        "sample_n_bytes -i 2\nsample_byte_format -s2 01\n" +
        lines + "end_head\n";
    file.resize(1024, ' ');
    file.resize(1024 + bytes, 'x');
    return folder.write("a.sph", Bytes(file.begin(), file.end()));
  };
  for (const size_t bytes : {3000, 9000}) {
    CHECK_THAT(complaint(sphere("sample_coding -s26 pcm,embedded-shorten-v2.00\n", bytes)),
               Catch::Contains("it is compressed with Shorten, which is not read; unpack it, with sph2pipe"));
  }
  const std::string other = "sample_coding -s3 pcm\nnote -s16 embedded-shorten\n";
  CHECK_THAT(complaint(sphere(other, 3000)),
             Catch::Contains("the file is truncated: it lacks 5000 bytes that its header"));
  CHECK(read(sphere(other, 8000)).size() == 4000);
}

TEST_CASE("audio: a truncated file is never a shorter one") {
  const TempFolder folder;
  const auto [format, lost] = GENERATE(table<int, int>({
      {SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1},
      {SF_FORMAT_WAV | SF_FORMAT_PCM_16, 3000},
      {SF_FORMAT_NIST | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, 2},
      {SF_FORMAT_NIST | SF_FORMAT_PCM_16 | SF_ENDIAN_LITTLE, 5000},
      {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1},
      {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 4000},
  }));
  CAPTURE(format, lost);
  const std::string path = write_sound(folder, "cut", sine(440, 16000, 8000), {16000, 1, format});
  REQUIRE(read(path).size() == 8000);
  cut(path, lost);
  CHECK_THAT(complaint(path), Catch::Contains("get it again"));
  if ((format & SF_FORMAT_TYPEMASK) == SF_FORMAT_WAV && lost == 1) {
    CHECK_THAT(complaint(path), Catch::Contains("it lacks 1 byte that its header promises"));
  }
}

// A chunk of a WAV file.
Bytes chunk(const std::string& name, uint32_t length, const Bytes& content) {
  Bytes made(name.begin(), name.end());
  for (int i = 0; i < 4; ++i) made.push_back(static_cast<uint8_t>(length >> (8 * i)));
  made.insert(made.end(), content.begin(), content.end());
  return made;
}

TEST_CASE("audio: what a WAV says beside its samples is not looked at, however wrong it is") {
  const TempFolder folder;
  const std::string path = write_sound(folder, "good.wav", sine(440, 16000, 2000));
  const std::vector<float> samples = read(path);
  const Bytes good = bytes_of(path);
  // An entry of a list whose length takes libsndfile 1.2 back to where the entry began, for ever.
  Bytes entries = {'a', 'd', 't', 'l', 'a', 'b', 'c', 'd', 0xf8, 0xff, 0xff, 0xff};
  entries.resize(24);
  const Bytes list = chunk("LIST", 24, entries);
  const Bytes no_texts = chunk("bext", 10, Bytes(10, 0xff)), odd = chunk("junk", 3, Bytes(4, 1));
  for (const Bytes& extra : {list, no_texts, odd, chunk("fact", 5000, Bytes(5000, 0xff))}) {
    CAPTURE(std::string(extra.begin(), extra.begin() + 4));
    Bytes before = good, behind = good;
    before.insert(before.begin() + 12, extra.begin(), extra.end());
    behind.insert(behind.end(), extra.begin(), extra.end());
    CHECK(read(folder.write("before.wav", before)) == samples);
    CHECK(read(folder.write("behind.wav", behind)) == samples);
    CHECK(SoundFile(folder.path() + "/before.wav").samples() == 2000);
  }
  // What a fuzzer found: the list's length is that of no file, so that there are no samples.
  Bytes endless = {'R', 'I', 'F', 'F', 0x68, 3, 0, 0, 'W', 'A', 'V', 'E'};
  const Bytes lengths = chunk("LIST", 0xffff725f, Bytes(195, 0xff));
  endless.insert(endless.end(), lengths.begin(), lengths.end());
  CHECK_THAT(complaint(folder.write("endless.wav", endless)), Catch::Contains("no WAV, FLAC or SPHERE file"));
  CHECK_THROWS_AS(SoundFile(folder.path() + "/endless.wav"), BadExample);
}

TEST_CASE("audio: a WAV that was written into a pipe has all samples, also where they look like chunks") {
  const TempFolder folder;
  const uint32_t length = GENERATE(0u, 0x7fffefffu, 0x7ffff000u, 0x7fffff00u, 0x7fffffffu, 0xffffffffu);
  const std::string path = write_sound(folder, "good.wav", sine(440, 16000, 2000));
  const std::vector<float> samples = read(path);
  Bytes good = bytes_of(path);
  const Bytes old_header = chunk("data", 4000, {}), new_header = chunk("data", length, {});
  const auto at = std::search(good.begin(), good.end(), old_header.begin(), old_header.end());
  REQUIRE(at != good.end());
  const auto first = std::copy(new_header.begin(), new_header.end(), at);
  const Bytes riff = chunk("RIFF", length + 36, {});
  std::copy(riff.begin(), riff.end(), good.begin());
  CHECK(read(folder.write("pipe.wav", good)) == samples);
  // What a fuzzer found: taken for a list, samples keep libsndfile 1.2 busy for ever, as the length of the last entry
  // (-41) takes it back to an entry before.
  Bytes entries(76, 0xff);
  entries.insert(entries.end(), {0xd7, 0xff, 0xff, 0xff});
  const Bytes list = chunk("LIST", 0x4c45725f, entries);
  good.erase(first, good.end());
  good.insert(good.end(), list.begin(), list.end());
  CHECK(read(folder.write("list.wav", good)).size() == list.size() / 2);
}

TEST_CASE("audio: a whole WAV without samples has none, whatever is behind them") {
  const TempFolder folder;
  Bytes wav = bytes_of(write_sound(folder, "none.wav", {}));
  const Bytes list = chunk("LIST", 26, Bytes(26, 1));
  wav.insert(wav.end(), list.begin(), list.end());
  const Bytes riff = chunk("RIFF", static_cast<uint32_t>(wav.size()) - 8, {});
  std::copy(riff.begin(), riff.end(), wav.begin());
  CHECK_THAT(complaint(folder.write("list.wav", wav)), Catch::Contains("the file holds no samples"));
}

TEST_CASE("audio: damaged files end in samples or in a BadExample") {
  const TempFolder folder;
  const int format =
      GENERATE(SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_NIST | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  const Bytes good = bytes_of(write_sound(folder, "good", sine(440, 16000, 2000), {16000, 1, format}));
  AudioScratch scratch;
  std::vector<float> out;
  int failed = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const Philox rng(11, i);
    Bytes bytes = good;
    for (uint32_t flip = 0; flip <= rng.below(0, 3); ++flip) {
      const uint32_t range = rng.below(1 + 3 * flip, 2) == 0 ? 64 : static_cast<uint32_t>(bytes.size());
      bytes[rng.below(2 + 3 * flip, range)] ^= static_cast<uint8_t>(1 + rng.below(3 + 3 * flip, 255));
    }
    try {
      decode_audio(bytes, "x", {}, scratch, out);
      CHECK(!out.empty());
      CHECK(out.size() <= 60 * 16000 + 1);
    } catch (const BadExample&) {
      ++failed;
    }
  }
  CHECK(failed > 0);
}

}  // namespace
}  // namespace dgc
