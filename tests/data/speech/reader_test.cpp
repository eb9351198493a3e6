#include "data/speech/reader.h"

#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

TEST_CASE("speech reader: a recording longer than listed, and augmentation only with a draw") {
  const TempFolder folder;
  const std::string a = write_sound(folder, "100.wav", sine(100, 16000, 480));
  const std::string b = write_sound(folder, "101.wav", sine(200, 16000, 640));
  // The second has 0.04 s: within what rounding may do.
  const SpeechCorpus corpus({{"list: a", a, "A", 0}, {"list: b", b, "AA", 0.03}}, {.alphabet = "AB"});
  SpeechOptions options;
  options.augment.noise_probability = 1;
  const SpeechReader reader(corpus, options);
  SpeechScratch scratch(options);
  std::vector<float> plain, again, augmented;
  reader.read(0, nullptr, scratch, plain);
  reader.read(0, nullptr, scratch, again);
  const SpeechDraw draw(1, 1, 0);
  reader.read(0, &draw, scratch, augmented);
  CHECK(plain == again);
  CHECK(plain != augmented);

  reader.read(1, nullptr, scratch, again);
  CHECK(reader.max_frames() >= std::ssize(again) / reader.features());

  write_sound(folder, "100.wav", sine(100, 16000, 319));
  CHECK_THAT(user_error([&] { reader.read(0, nullptr, scratch, plain); }),
             Catch::Contains("100.wav: it has 319 samples, fewer than the 320 of a window; give a longer recording"));
  write_sound(folder, "100.wav", sine(100, 16000, 1));
  CHECK_THAT(user_error([&] { reader.read(0, nullptr, scratch, plain); }),
             Catch::Contains("100.wav: it has 1 sample, fewer than the 320 of a window"));
  write_sound(folder, "100.wav", sine(100, 16000, 4000));
  CHECK_THAT(user_error([&] { reader.read(0, nullptr, scratch, plain); }),
             Catch::Contains("100.wav: it is 0.25 s long, but listed with 0.03 s"));
}

TEST_CASE("speech reader: with a draw, tempo and masks are the augmentation's") {
  const TempFolder folder;
  const std::string path = write_sound(folder, "a.wav", sine(300, 16000, 16000));
  const SpeechCorpus corpus({{"list: a", path, "A", 0}}, {.alphabet = "AB"});
  const SpeechDraw draw(1, 1, 0);
  std::vector<float> out;
  SpeechOptions slow;
  slow.augment.min_tempo = slow.augment.max_tempo = 0.8;
  SpeechScratch scratch(slow);
  const SpeechReader reader(corpus, slow);
  const int64_t frames = scratch.extractor.frames(16000, 0.8);
  reader.read(0, &draw, scratch, out);
  CHECK(std::ssize(out) == frames * reader.features());
  CHECK(reader.max_frames() >= frames);
  reader.read(0, nullptr, scratch, out);
  CHECK(std::ssize(out) == scratch.extractor.frames(16000, 1) * reader.features());

  SpeechOptions masks;
  masks.augment.mask = {.time_masks = 3, .time_frames = 20, .time_share = 1, .feature_masks = 2, .feature_width = 20};
  const SpeechReader masking(corpus, masks);
  std::vector<float> masked = out;
  mask_features(masks.augment.mask, draw, masking.features(), masked);
  CHECK(masked != out);
  masking.read(0, &draw, scratch, out);
  CHECK(out == masked);
}

}  // namespace
}  // namespace dgc
