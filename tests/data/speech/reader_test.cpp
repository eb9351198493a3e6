#include "data/speech/reader.h"

#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

TEST_CASE("speech reader: a recording longer than listed, and augmentation only with a draw") {
  const TempFolder folder;
  const std::string a = write_sound(folder, "100.wav", sine(100, 16000, 480));
  const std::string b = write_sound(folder, "101.wav", sine(200, 16000, 640));
  // The second has 0.04 s: within what rounding may do.
  const SpeechCorpus corpus({{"list: a", a, "A", 0}, {"list: b", b, "AA", 0.03}}, Alphabet("AB"), {});
  SpeechReaderOptions options;
  options.augment.noise_probability = 1;
  const SpeechReader reader(corpus, options);
  SpeechScratch scratch(options.features, options.audio.sample_rate);
  std::vector<float> plain, again, augmented;
  reader.read(0, nullptr, scratch, plain);
  reader.read(0, nullptr, scratch, again);
  const SpeechDraw draw(1, 1, 0);
  reader.read(0, &draw, scratch, augmented);
  CHECK(plain == again);
  CHECK(plain != augmented);

  write_sound(folder, "100.wav", sine(100, 16000, 4000));
  CHECK_THAT(user_error([&] { reader.read(0, nullptr, scratch, plain); }),
             Catch::Contains("100.wav: it is 0.25 s long, but listed with 0.03 s"));
}

}  // namespace
}  // namespace dgc
