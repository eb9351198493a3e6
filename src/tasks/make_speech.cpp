#include "tasks/make_speech.h"

#include <algorithm>
#include <cmath>

#include "config/data_types.h"
#include "data/held_back.h"
#include "data/speech/corpus.h"

namespace dgc {
namespace {

FeatureExtractor feature_extractor(const SpeechOptions& o) { return {o.features, o.audio.sample_rate}; }

// The utterances of the training or the test set.
std::vector<Utterance> list_utterances(const DataOptions& data, Split split) {
  const bool training = split == Split::train;
  std::vector<Utterance> listed =
      data_type(data).list(data.path, training ? data.speech.train : data.speech.test, split);
  const std::optional<int64_t> limit = training ? data.train_limit : data.test_limit;
  if (limit) listed.resize(std::min(listed.size(), static_cast<size_t>(*limit)));
  return listed;
}

// What of the training set is trained on, or validates.
std::vector<Utterance> part_of(std::vector<Utterance> all, const Config& config, Split split) {
  if (config.data.validation_split == 0) return all;
  const HeldBack parts = hold_back(std::ssize(all), config.data.validation_split, config.seed);
  std::vector<Utterance> part;
  for (const int32_t i : split == Split::train ? parts.trained : parts.held) {
    part.push_back(std::move(all[static_cast<size_t>(i)]));
  }
  return part;
}

}  // namespace

std::unique_ptr<Speech> make_speech(const Config& config, Split split) {
  const DataOptions& data = config.data;
  const bool training = split == Split::train;
  SpeechOptions o = data.speech;
  if (!training) o.augment = {};
  std::vector<Utterance> listed = split == Split::test ? list_utterances(data, Split::test)
                                                       : part_of(list_utterances(data, Split::train), config, split);
  auto corpus = std::make_unique<SpeechCorpus>(std::move(listed), o, static_cast<int>(data.threads));
  // A stream without an utterance would cost as much as one that has one.
  const int64_t streams =
      training ? config.training.micro_batch() : std::min(config.training.eval_batch, corpus->size());
  return std::make_unique<Speech>(std::move(corpus), o, streams);
}

Shape speech_sample(const Config& config, int64_t streams) {
  return {streams, feature_extractor(config.data.speech).features()};
}

int64_t most_frames(const Config& config, Split split) {
  const SpeechOptions& o = config.data.speech;
  const auto samples = std::llround(o.audio.max_seconds * static_cast<double>(o.audio.sample_rate));
  return feature_extractor(o).frames(samples, split == Split::train ? o.augment.min_tempo : 1.0);
}

}  // namespace dgc
