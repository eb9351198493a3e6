#include "data/speech/reader.h"

#include <cmath>

#include "tensor/counted.h"

namespace dgc {
namespace {

// Seconds by which a recording may be longer than listed: lists round durations, and resampling may round up.
constexpr double kSlack = 0.05;

}  // namespace

void read_recording(const std::string& path, const AudioOptions& options, SpeechScratch& scratch) {
  read_audio(path, options, scratch.audio, scratch.samples);
  const int64_t there = std::ssize(scratch.samples), window = scratch.extractor.window();
  if (there >= window) return;
  throw_bad_example("{}: it has {}, fewer than the {} of a window; give a longer recording, or remove it", path,
                    counted(there, "sample"), window);
}

SpeechReader::SpeechReader(const SpeechCorpus& corpus, const SpeechOptions& options)
    : corpus_(corpus), options_(options) {
  const FeatureExtractor extractor(options.features, options.audio.sample_rate);
  features_ = extractor.features();
  const auto samples_of = [&](double seconds) {
    return std::llround(seconds * static_cast<double>(options.audio.sample_rate));
  };
  max_frames_ = extractor.frames(samples_of(corpus.longest_seconds() + kSlack), options.augment.min_tempo);
  for (int64_t i = 0; i < corpus.size(); ++i) {
    frames_.push_back(extractor.frames(samples_of(corpus.utterance(i).seconds), 1));
  }
}

void SpeechReader::read(int64_t i, const SpeechDraw* draw, SpeechScratch& scratch, std::vector<float>& out) const {
  const Utterance& utterance = corpus_.utterance(i);
  std::vector<float>& samples = scratch.samples;
  read_recording(utterance.path, options_.audio, scratch);
  const double seconds = static_cast<double>(samples.size()) / static_cast<double>(options_.audio.sample_rate);
  if (seconds > utterance.seconds + kSlack) {
    throw_bad_example("{}: it is {:.2f} s long, but listed with {:.2f} s; correct the list", utterance.path, seconds,
                      utterance.seconds);
  }
  if (draw != nullptr) add_noise(options_.augment, *draw, samples);
  scratch.extractor.compute(samples, draw != nullptr ? draw_tempo(options_.augment, *draw) : 1.0, out);
  if (draw != nullptr) mask_features(options_.augment.mask, *draw, features_, out);
}

}  // namespace dgc
