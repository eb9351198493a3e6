#include "data/speech/augment.h"

#include <catch.hpp>
#include <cmath>
#include <set>

#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

double power(std::span<const float> samples) {
  double sum = 0;
  for (const float s : samples) sum += static_cast<double>(s) * s;
  return sum / static_cast<double>(samples.size());
}

TEST_CASE("speech augmentation: a function of seed, epoch and utterance") {
  const SpeechDraw one(1, 2, 3), same(1, 2, 3);
  CHECK(one.uniform(0) == same.uniform(0));
  CHECK(one.noise(17) == same.noise(17));
  const std::set<float> all{one.uniform(0), SpeechDraw(2, 2, 3).uniform(0), SpeechDraw(1, 3, 3).uniform(0),
                            SpeechDraw(1, 2, 4).uniform(0), SpeechDraw(1, 3, 2).uniform(0)};
  CHECK(all.size() == 5);
}

TEST_CASE("speech augmentation: noise has the power that was asked for") {
  const std::vector<float> clean = sine(440, 16000, 40000);
  SpeechAugmentOptions options;
  std::vector<float> samples = clean;
  add_noise(options, SpeechDraw(1, 1, 1), samples);
  CHECK(samples == clean);  // off
  options.noise_probability = 1;
  options.min_noise_db = options.max_noise_db = 20;
  add_noise(options, SpeechDraw(1, 1, 1), samples);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] -= clean[i];
  // 1/100 of the tone's 1/8; the mean of 40000 squares deviates by sqrt(2 / 40000) = 0.7 %.
  CHECK(power(samples) == Approx(0.00125).epsilon(0.04));

  options.noise_probability = 0.25;
  int noisy = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    std::vector<float> some(4, 0.5f);
    add_noise(options, SpeechDraw(1, 0, i), some);
    noisy += some[0] != 0.5f;
  }
  CHECK(noisy == Approx(250).margin(60));  // more than four deviations of 13.7
}

TEST_CASE("speech augmentation: tempo fills its range") {
  SpeechAugmentOptions options;
  CHECK(draw_tempo(options, SpeechDraw(1, 1, 1)) == 1);
  options.min_tempo = 0.85;
  options.max_tempo = 1.15;
  double low = 2, high = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const double tempo = draw_tempo(options, SpeechDraw(1, 1, i));
    low = std::min(low, tempo);
    high = std::max(high, tempo);
  }
  CHECK((low >= 0.85 && low < 0.86 && high > 1.14 && high <= 1.15));
}

TEST_CASE("speech augmentation: masks of a kind lie in places of their own") {
  constexpr int64_t kFrames = 50, kFeatures = 20;
  size_t most_rows = 0, most_columns = 0;
  for (int64_t i = 0; i < 50; ++i) {
    std::vector<float> times(kFrames * kFeatures, 1.f), features = times;
    mask_features({2, 8, 1.0, 0, 0}, SpeechDraw(3, 0, i), kFeatures, times);
    mask_features({0, 0, 1.0, 2, 3}, SpeechDraw(3, 0, i), kFeatures, features);
    const auto zeros = [](const std::vector<float>& values) {
      return static_cast<size_t>(std::count(values.begin(), values.end(), 0.f));
    };
    most_rows = std::max(most_rows, zeros(times) / kFeatures);
    most_columns = std::max(most_columns, zeros(features) / kFrames);
  }
  CHECK((most_rows > 8 && most_rows <= 16));
  CHECK((most_columns > 3 && most_columns <= 6));
}

TEST_CASE("speech augmentation: masks are bands of zeros, no wider than allowed") {
  constexpr int64_t kFrames = 50, kFeatures = 20;
  MaskOptions options;
  std::set<int64_t> widths;
  double from_middle = 0;  // how far each mask lies behind the middle of its places
  int64_t earliest = kFrames, latest = -1;
  for (int64_t i = 0; i < 200; ++i) {
    std::vector<float> values(kFrames * kFeatures, 1.f);
    options = {1, 8, 1.0, 0, 0};
    mask_features(options, SpeechDraw(3, 0, i), kFeatures, values);
    int64_t rows = 0, first = kFrames, last = -1;
    for (int64_t t = 0; t < kFrames; ++t) {
      const auto zeros = std::count(values.begin() + t * kFeatures, values.begin() + (t + 1) * kFeatures, 0.f);
      REQUIRE((zeros == 0 || zeros == kFeatures));
      if (zeros == 0) continue;
      ++rows;
      first = std::min(first, t);
      last = t;
    }
    CHECK((rows == 0 || last - first + 1 == rows));
    widths.insert(rows);
    earliest = std::min(earliest, first), latest = std::max(latest, last);
    if (rows > 0) from_middle += static_cast<double>(first) - static_cast<double>(kFrames - rows) / 2;
  }
  CHECK(widths == std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(from_middle / 200 == Approx(0).margin(4));  // four deviations of 1
  CHECK((earliest == 0 && latest == kFrames - 1));

  options = {0, 0, 1.0, 1, 3};
  std::vector<float> values(kFrames * kFeatures, 1.f);
  for (int64_t i = 0; std::count(values.begin(), values.end(), 0.f) == 0; ++i) {
    mask_features(options, SpeechDraw(3, 0, i), kFeatures, values);
  }
  for (int64_t t = 1; t < kFrames; ++t) {
    CHECK(std::equal(values.begin(), values.begin() + kFeatures, values.begin() + t * kFeatures));
  }
  CHECK(std::count(values.begin(), values.begin() + kFeatures, 0.f) <= 3);

  options = {4, 1000, 0.1, 0, 0};  // each at most a tenth of the 50 frames
  std::fill(values.begin(), values.end(), 1.f);
  mask_features(options, SpeechDraw(3, 1, 1), kFeatures, values);
  CHECK(std::count(values.begin(), values.end(), 0.f) <= 4 * 5 * kFeatures);
}

}  // namespace
}  // namespace dgc
