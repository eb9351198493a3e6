#include "data/speech/features.h"

#include <complex>

#include "tensor/rng.h"
#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

double hann(size_t i, size_t n) {
  return std::pow(std::sin(std::numbers::pi * static_cast<double>(i) / static_cast<double>(n)), 2);
}

// The definition, in double.
std::vector<double> direct_power(const std::vector<float>& samples, size_t size) {
  std::vector<double> out;
  for (size_t k = 0; k <= size / 2; ++k) {
    std::complex<double> sum = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(i * k % size) / static_cast<double>(size);
      sum += std::polar(hann(i, samples.size()) * samples[i], angle);
    }
    out.push_back(std::norm(sum));
  }
  return out;
}

std::vector<float> noise(size_t count, uint64_t seed) {
  const Philox rng(seed, 0);
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = 0.1f * rng.normal(i);
  return out;
}

constexpr int64_t kRate = 16000;

std::vector<float> features_of(const FeatureOptions& options, const std::vector<float>& samples, double tempo = 1,
                               int64_t sample_rate = kRate) {
  FeatureExtractor extractor(options, sample_rate);
  std::vector<float> out;
  extractor.compute(samples, tempo, out);
  CHECK(std::ssize(out) == extractor.frames(std::ssize(samples), tempo) * extractor.features());
  return out;
}

void check_moments(const std::vector<float>& values, size_t first, size_t step) {
  double sum = 0, squares = 0, count = 0;
  for (size_t i = first; i < values.size(); i += step, ++count) sum += values[i];
  for (size_t i = first; i < values.size(); i += step) squares += std::pow(values[i] - sum / count, 2);
  CHECK(std::abs(sum / count) < 1e-5);
  CHECK(std::sqrt(squares / count) == Approx(1).epsilon(1e-4));
}

TEST_CASE("spectrum: power is the direct transform's") {
  const size_t window = GENERATE(2, 3, 4, 16, 25, 160, 320, 441);
  CAPTURE(window);
  Spectrum spectrum(static_cast<int64_t>(window));
  REQUIRE(spectrum.bins() == static_cast<int64_t>((window + 1) / 2 + 1));
  const std::vector<float> samples = noise(window, window);
  std::vector<float> power(static_cast<size_t>(spectrum.bins()));
  spectrum.power(samples.data(), power.data());
  const std::vector<double> want = direct_power(samples, window + window % 2);
  double energy = 0;
  for (const double value : want) energy += value;
  for (size_t k = 0; k < want.size(); ++k) CHECK(std::abs(power[k] - want[k]) <= 1e-5 * energy);
}

TEST_CASE("spectrum: a tone on a bin fills three, as the Hann window says") {
  constexpr size_t n = 320;
  Spectrum spectrum(n);
  std::vector<float> power(161);
  const size_t bin = GENERATE(5, 44, 150);
  const std::vector<float> tone = sine(50.0 * static_cast<double>(bin), 16000, n, 0.5);
  spectrum.power(tone.data(), power.data());
  // Amplitude a: |X| = a n / 4 at the bin, a n / 8 beside it, 0 elsewhere.
  for (size_t k = 0; k < power.size(); ++k) {
    const double want = k == bin ? 40 : k + 1 == bin || k == bin + 1 ? 20 : 0;
    CHECK(std::sqrt(power[k]) == Approx(want).margin(1e-3));
  }
}

TEST_CASE("spectrum: Parseval") {
  constexpr size_t n = 160;
  Spectrum spectrum(n);
  const std::vector<float> samples = noise(n, 3);
  std::vector<float> power(81);
  spectrum.power(samples.data(), power.data());
  double energy = 0, sum = power[0] + power[80];
  for (size_t i = 0; i < n; ++i) energy += std::pow(hann(i, n) * samples[i], 2);
  for (size_t k = 1; k < 80; ++k) sum += 2.0 * power[k];
  CHECK(sum / n == Approx(energy).epsilon(1e-5));
}

TEST_CASE("mel: the scale's known points, and filters by hand") {
  CHECK(mel_of(0) == 0);
  CHECK(mel_of(700) == Approx(2595 * std::log10(2.0)));
  CHECK(mel_of(1000) == Approx(999.9855).epsilon(1e-6));
  CHECK(mel_of(8000) == Approx(2840.0230).epsilon(1e-6));
  CHECK(hertz_of(mel_of(1234.5)) == Approx(1234.5));

  // Three filters up to 4000 Hz: corners 0, 459.4, 1220.2, 2480.3 (their mels a quarter of 2146.1 apart) and 4000 Hz.
  const MelFilters filters(3, 160, 8000);
  const double corners[] = {0, hertz_of(mel_of(4000) / 4), hertz_of(mel_of(4000) / 2), hertz_of(mel_of(4000) * 0.75),
                            4000};
  for (size_t bin = 0; bin <= 80; ++bin) {
    std::vector<float> power(81, 0.f), out(3);
    power[bin] = 2;
    filters.apply(power.data(), out.data());
    const double hertz = 50.0 * static_cast<double>(bin);
    for (size_t m = 0; m < 3; ++m) {
      double want = 0;
      if (hertz > corners[m] && hertz <= corners[m + 1]) want = (hertz - corners[m]) / (corners[m + 1] - corners[m]);
      if (hertz > corners[m + 1] && hertz < corners[m + 2]) {
        want = (corners[m + 2] - hertz) / (corners[m + 2] - corners[m + 1]);
      }
      CHECK(out[m] == Approx(2 * want).margin(1e-5));
    }
  }
  CHECK_THAT(user_error([] { MelFilters(100, 320, 16000); }),
             Catch::Contains("data.features.mels: of 100 filters, number 1 is so narrow"));
}

TEST_CASE("features: frames lie inside the samples") {
  const FeatureExtractor extractor(FeatureOptions{}, kRate);
  REQUIRE(extractor.features() == 161);
  REQUIRE(extractor.window() == 320);
  const auto [samples, frames] =
      GENERATE(table<int64_t, int64_t>({{0, 0}, {319, 0}, {320, 1}, {479, 1}, {480, 2}, {16000, 99}}));
  CHECK(extractor.frames(samples, 1) == frames);
}

TEST_CASE("features: sizes at other rates, and windows that are none") {
  FeatureOptions options;
  CHECK(FeatureExtractor(options, 8000).features() == 81);
  constexpr int64_t kOdd = 22050;  // 441 samples, transformed as 442
  CHECK(FeatureExtractor(options, kOdd).features() == 222);
  options.kind = FeatureKind::log_mel;
  CHECK(FeatureExtractor(options, kOdd).features() == 40);
  options.step_ms = 0;
  CHECK_THAT(user_error([&] { FeatureExtractor(options, kOdd); }),
             Catch::Contains("data.features.step_ms: 0 ms are 0 samples at 22050 Hz"));
  options.step_ms = 1;
  options.window_ms = 0.05;
  CHECK_THAT(user_error([&] { FeatureExtractor(options, kOdd); }),
             Catch::Contains("data.features.window_ms: 0.05 ms are 1 sample at 22050 Hz; give at least 2"));
}

TEST_CASE("features: the logarithms of the direct transform, scaled over the utterance") {
  FeatureOptions options;
  options.kind = GENERATE(FeatureKind::spectrogram, FeatureKind::log_mel);
  options.mels = 3;
  std::vector<float> samples = noise(47, 9);
  const float loudness = GENERATE(1.f, 1e-3f);  // the latter is about as loud as what is added to a power
  for (float& sample : samples) sample *= loudness;
  const std::vector<float> got = features_of(options, samples, 1, 1000);  // windows of 20 samples, 11 bins
  std::vector<float> want;
  for (const size_t at : {0, 10, 20}) {
    const std::vector<double> power = direct_power({samples.begin() + at, samples.begin() + at + 20}, 20);
    if (options.kind == FeatureKind::spectrogram) {
      for (const double p : power) want.push_back(static_cast<float>(std::log(1 + std::sqrt(p))));
    } else {
      const std::vector<float> single(power.begin(), power.end());
      float sums[3];
      MelFilters(3, 20, 1000).apply(single.data(), sums);
      for (const float sum : sums) want.push_back(std::log(sum + 1e-8f));
    }
  }
  scale_features(FeatureScaling::utterance, 1, want);
  CHECK(largest_difference(got, want) < 2e-4f);
}

TEST_CASE("features: mean 0 and deviation 1, of all or of each, and silence is 0") {
  FeatureOptions options;
  options.kind = GENERATE(FeatureKind::spectrogram, FeatureKind::log_mel);
  check_moments(features_of(options, noise(16000, 4)), 0, 1);
  options.scaling = FeatureScaling::feature;
  const std::vector<float> each = features_of(options, noise(16000, 4));
  const auto columns = static_cast<size_t>(FeatureExtractor(options, kRate).features());
  for (const size_t column : {size_t{0}, columns / 2, columns - 1}) check_moments(each, column, columns);

  options.scaling = GENERATE(FeatureScaling::utterance, FeatureScaling::feature);
  for (const float value : features_of(options, std::vector<float>(4000, 0.f))) REQUIRE(value == 0);
}

TEST_CASE("features: what varies by less than can be heard does not vary") {
  std::vector<float> values = {1, std::nextafter(1.f, 2.f), 1, 1};
  scale_features(GENERATE(FeatureScaling::utterance, FeatureScaling::feature), 2, values);
  CHECK(values == std::vector<float>(4));
}

TEST_CASE("features: tempo shortens the time and leaves the pitch") {
  FeatureOptions options;
  const FeatureExtractor extractor(options, kRate);
  CHECK(extractor.frames(32320, 1) == 201);
  CHECK(extractor.frames(32320, 1.25) == 161);
  CHECK(extractor.frames(32320, 0.8) == 251);
  // At twice the tempo, frame t is the old frame 2 t.
  options.scaling = FeatureScaling::utterance;
  std::vector<float> samples = sine(500, 16000, 8000);
  std::vector<float> plain, quick;
  FeatureExtractor one(options, kRate), two(options, kRate);
  one.compute(samples, 1, plain);
  two.compute(samples, 2, quick);
  REQUIRE(quick.size() / 161 == (plain.size() / 161 + 1) / 2);
  for (size_t t = 0; t < quick.size() / 161; ++t) {
    for (size_t k = 0; k < 161; ++k) REQUIRE(quick[t * 161 + k] == Approx(plain[2 * t * 161 + k]).margin(1e-3));
  }
}

}  // namespace
}  // namespace dgc
