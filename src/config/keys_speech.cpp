#include "config/keys.h"

namespace dgc {
namespace {

template <class Features>
void add_feature_keys(Features features, const std::vector<std::string>& speech) {
  features
      .add("kind", &SpeechFeatureOptions::kind,
           "`spectrogram`: the logarithm of every frequency; `log_mel`: logarithms of the power in `mels` bands")
      .only(speech);
  features
      .add("scaling", &SpeechFeatureOptions::scaling,
           "Mean 0 and deviation 1 over the `utterance`, or for each `feature` by itself over its time")
      .only(speech);
  features.add("window_ms", &SpeechFeatureOptions::window_ms, "Length of a frame")
      .only(speech)
      .more_than(0)
      .at_most(1000);
  features.add("step_ms", &SpeechFeatureOptions::step_ms, "From the beginning of a frame to that of the next")
      .only(speech)
      .more_than(0)
      .at_most(1000);
  features.add("mels", &SpeechFeatureOptions::mels, "Bands of `log_mel`").only(speech).at_least(1).at_most(1000);
}

template <class Augment>
void add_augment_keys(Augment augment, const std::vector<std::string>& speech) {
  using Options = SpeechAugmentationOptions;
  const auto number = [&](const char* name, double Options::*member, double least, double most, const char* doc) {
    augment.add(name, member, doc).only(speech).at_least(least).at_most(most);
  };
  number("noise_probability", &Options::noise_probability, 0, 1, "Share of utterances to which white noise is added");
  number("min_noise_db", &Options::min_noise_db, -20, 120, "Least distance of that noise below the utterance, in dB");
  number("max_noise_db", &Options::max_noise_db, -20, 120,
         "Greatest distance of that noise below the utterance, in dB");
  number("min_tempo", &Options::min_tempo, 0.5, 2, "Slowest speech, at the same pitch; 1: as recorded");
  number("max_tempo", &Options::max_tempo, 0.5, 2, "Quickest speech, at the same pitch");
  auto mask = augment.section("mask", &Options::mask);
  const auto count = [&](const char* name, int64_t SpeechMaskOptions::*member, const char* doc) {
    mask.add(name, member, doc).only(speech).at_least(0).at_most(10000);
  };
  count("time_masks", &SpeechMaskOptions::time_masks, "SpecAugment: stretches of time that are set to the mean");
  count("time_frames", &SpeechMaskOptions::time_frames, "Longest of them, in frames");
  mask.add("time_share", &SpeechMaskOptions::time_share, "Longest of them, as a share of the utterance")
      .only(speech)
      .at_least(0)
      .at_most(1);
  count("feature_masks", &SpeechMaskOptions::feature_masks, "SpecAugment: bands of features that are set to the mean");
  count("feature_width", &SpeechMaskOptions::feature_width, "Widest of them, in features");
}

}  // namespace

void add_speech_data_keys(const Section<Config, DataOptions Config::*>& data) {
  const std::vector<std::string> speech = {"an4", "librispeech", "speech_manifest"};
  const std::vector<std::string> listed = {"librispeech", "speech_manifest"};
  auto sounds = data.part(&DataOptions::speech);
  sounds
      .add("train", &SpeechDataOptions::train,
           "Parts of `path` to train on: folders of `librispeech` (none: all `train-*`), files of `speech_manifest` "
           "(none: `train.jsonl`)")
      .only(listed)
      .matches(".+")
      .free_on_resume();
  sounds
      .add("test", &SpeechDataOptions::test,
           "Parts of `path` to measure by; none: `test-clean` of `librispeech`, `test.jsonl` of `speech_manifest`")
      .only(listed)
      .matches(".+")
      .free_on_resume();
  sounds.add("alphabet", &SpeechDataOptions::alphabet, "Characters that transcripts have, and the model writes")
      .only(speech)
      .matches(".+");
  sounds.add("sample_rate", &SpeechDataOptions::sample_rate, "Samples per second that the model hears")
      .only(speech)
      .at_least(100)
      .at_most(1000000);
  sounds
      .add("resample", &SpeechDataOptions::resample, "Convert recordings of another rate; false: they are bad examples")
      .only(speech);
  sounds
      .add("max_seconds", &SpeechDataOptions::max_seconds,
           "Longer recordings are bad examples: the longest decides on the memory")
      .only(speech)
      .more_than(0)
      .at_most(3600);
  sounds
      .add("on_bad_example", &SpeechDataOptions::on_bad_example,
           "A recording or transcript that cannot be used: `refuse` ends the run with its name, `skip` leaves it out "
           "and says so")
      .only(speech);
  add_feature_keys(sounds.section("features", &SpeechDataOptions::features), speech);
  add_augment_keys(sounds.section("augment", &SpeechDataOptions::augment), speech);
  sounds
      .add("bucket_batches", &SpeechDataOptions::bucket_batches,
           "Steps whose utterances are sorted by length together; more: less padding, and less shuffling")
      .only(speech)
      .at_least(1)
      .at_most(1000000);
  sounds
      .add("sorted_epochs", &SpeechDataOptions::sorted_epochs,
           "The first so many epochs go from short utterances to long ones, on which CTC starts more steadily")
      .only(speech)
      .at_least(0)
      .at_most(1000000);
}

}  // namespace dgc
