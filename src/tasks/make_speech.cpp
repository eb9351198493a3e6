#include "tasks/make_speech.h"

#include <cmath>

#include "config/enum_names.h"
#include "data/speech/open_speech.h"
#include "models/deep_speech.h"

namespace dgc {
namespace {

SpeechAugmentOptions augment_options(const SpeechAugmentationOptions& o) {
  return {.noise_probability = o.noise_probability,
          .min_noise_db = o.min_noise_db,
          .max_noise_db = o.max_noise_db,
          .min_tempo = o.min_tempo,
          .max_tempo = o.max_tempo,
          .mask = {.time_masks = static_cast<int>(o.mask.time_masks),
                   .time_frames = static_cast<int>(o.mask.time_frames),
                   .time_share = o.mask.time_share,
                   .feature_masks = static_cast<int>(o.mask.feature_masks),
                   .feature_width = static_cast<int>(o.mask.feature_width)}};
}

}  // namespace

AudioOptions audio_options(const Config& config) {
  const SpeechDataOptions& o = config.data.speech;
  return {.sample_rate = static_cast<int>(o.sample_rate), .resample = o.resample, .max_seconds = o.max_seconds};
}

FeatureOptions feature_options(const Config& config) {
  static_assert(static_cast<int>(SpeechFeatures::spectrogram) == static_cast<int>(FeatureKind::spectrogram));
  static_assert(static_cast<int>(SpeechFeatures::log_mel) == static_cast<int>(FeatureKind::log_mel));
  static_assert(static_cast<int>(SpeechScaling::utterance) == static_cast<int>(FeatureScaling::utterance));
  static_assert(static_cast<int>(SpeechScaling::feature) == static_cast<int>(FeatureScaling::feature));
  const SpeechFeatureOptions& o = config.data.speech.features;
  return {.kind = static_cast<FeatureKind>(o.kind),
          .scaling = static_cast<FeatureScaling>(o.scaling),
          .sample_rate = static_cast<int>(config.data.speech.sample_rate),
          .window_ms = o.window_ms,
          .step_ms = o.step_ms,
          .mels = static_cast<int>(o.mels)};
}

std::unique_ptr<Speech> make_speech(const Config& config, Split split) {
  static_assert(static_cast<int>(BadExamples::refuse) == static_cast<int>(OnBadExample::refuse));
  static_assert(static_cast<int>(BadExamples::skip) == static_cast<int>(OnBadExample::skip));
  const SpeechDataOptions& o = config.data.speech;
  const bool training = split == Split::train;
  const auto on_bad_example = static_cast<OnBadExample>(o.on_bad_example);
  auto corpus = open_speech({.type = std::string(kEnumNames<DataType>[static_cast<size_t>(config.data.type)]),
                             .path = config.data.path,
                             .train = o.train,
                             .test = o.test,
                             .limit = training ? config.data.train_limit : config.data.test_limit,
                             .alphabet = o.alphabet,
                             .corpus = {.audio = audio_options(config),
                                        .min_seconds = o.features.window_ms / 1000,
                                        .on_bad_example = on_bad_example,
                                        .threads = static_cast<int>(config.data.threads)}},
                            split);
  return std::make_unique<Speech>(
      std::move(corpus),
      SpeechOptions{.alphabet = o.alphabet,
                    .reader = {.audio = audio_options(config),
                               .features = feature_options(config),
                               .augment = training ? augment_options(o.augment) : SpeechAugmentOptions{}},
                    .buckets = {.bucket_batches = o.bucket_batches, .sorted_epochs = o.sorted_epochs},
                    .on_bad_example = on_bad_example,
                    .streams = training ? config.training.batch_per_worker : config.training.eval_batch});
}

Shape speech_sample(const Config& config, int64_t streams) {
  return {streams, FeatureExtractor(feature_options(config)).features()};
}

int64_t most_frames(const Config& config, Split split) {
  const SpeechDataOptions& o = config.data.speech;
  const auto samples = std::llround(o.max_seconds * static_cast<double>(o.sample_rate));
  return FeatureExtractor(feature_options(config)).frames(samples, split == Split::train ? o.augment.min_tempo : 1.0);
}

Network make_speech_network(const SpeechModelOptions& o, const Shape& sample) {
  static_assert(static_cast<int>(SpeechCell::lstm) == static_cast<int>(RnnCell::lstm));
  static_assert(static_cast<int>(SpeechCell::gru) == static_cast<int>(RnnCell::gru));
  static_assert(static_cast<int>(SpeechCell::tanh) == static_cast<int>(RnnCell::tanh));
  static_assert(static_cast<int>(SpeechCell::relu) == static_cast<int>(RnnCell::relu));
  std::vector<SpeechConvolution> convolutions;
  for (size_t i = 0; i < o.convolutions.channels.size(); ++i) {
    convolutions.push_back({.channels = o.convolutions.channels[i],
                            .time = o.convolutions.kernel_frames[i],
                            .frequencies = o.convolutions.kernel_frequencies[i],
                            .time_stride = o.convolutions.stride_frames[i],
                            .frequency_stride = o.convolutions.stride_frequencies[i]});
  }
  return make_deep_speech({.frequencies = sample[1],
                           .classes = o.classes,
                           .convolutions = convolutions,
                           .cell = static_cast<RnnCell>(o.cell),
                           .layers = o.layers,
                           .hidden = o.hidden,
                           .biases = o.bias,
                           .bidirectional = o.bidirectional,
                           .lookahead = o.lookahead},
                          sample[0]);
}

}  // namespace dgc
