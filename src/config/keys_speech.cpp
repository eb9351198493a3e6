#include "config/data_types.h"
#include "config/keys.h"
#include "config/table.h"

namespace dgc {

template <>
inline constexpr auto kEnumNames<FeatureKind> = std::to_array<std::string_view>({"spectrogram", "log_mel"});
template <>
inline constexpr auto kEnumNames<FeatureScaling> = std::to_array<std::string_view>({"utterance", "feature"});
template <>
inline constexpr auto kEnumNames<OnBadExample> = std::to_array<std::string_view>({"refuse", "skip"});

namespace {

void add_feature_keys(const Section<FeatureOptions>& features) {
  features.add("kind", &FeatureOptions::kind,
               "`spectrogram`: the logarithm of every frequency; `log_mel`: logarithms of the power in `mels` bands");
  features.add("scaling", &FeatureOptions::scaling,
               "Mean 0 and deviation 1 over the `utterance`, or for each `feature` by itself over its time");
  features.add("window_ms", &FeatureOptions::window_ms, "Length of a frame").more_than(0).at_most(1000);
  features.add("step_ms", &FeatureOptions::step_ms, "From the beginning of a frame to that of the next")
      .more_than(0)
      .at_most(1000);
  features.add("mels", &FeatureOptions::mels, "Bands of `log_mel`").at_least(1).at_most(1000);
}

void add_augment_keys(const Section<SpeechAugmentOptions>& augment) {
  using Options = SpeechAugmentOptions;
  const auto number = [&](const char* name, double Options::*member, double least, double most, const char* doc) {
    augment.add(name, member, doc).at_least(least).at_most(most);
  };
  number("noise_probability", &Options::noise_probability, 0, 1, "Share of utterances to which white noise is added");
  number("min_noise_db", &Options::min_noise_db, -20, 120, "Least distance of that noise below the utterance, in dB");
  number("max_noise_db", &Options::max_noise_db, -20, 120,
         "Greatest distance of that noise below the utterance, in dB");
  number("min_tempo", &Options::min_tempo, 0.5, 2, "Slowest speech, at the same pitch; 1: as recorded");
  number("max_tempo", &Options::max_tempo, 0.5, 2, "Quickest speech, at the same pitch");
  const auto mask = augment.section("mask", &Options::mask);
  const auto count = [&](const char* name, int64_t MaskOptions::*member, const char* doc) {
    mask.add(name, member, doc).at_least(0).at_most(10000);
  };
  count("time_masks", &MaskOptions::time_masks, "SpecAugment: stretches of time that are set to the mean");
  count("time_frames", &MaskOptions::time_frames, "Longest of them, in frames");
  mask.add("time_share", &MaskOptions::time_share, "Longest of them, as a share of the utterance")
      .at_least(0)
      .at_most(1);
  count("feature_masks", &MaskOptions::feature_masks, "SpecAugment: bands of features that are set to the mean");
  count("feature_width", &MaskOptions::feature_width, "Widest of them, in features");
}

}  // namespace

void add_speech_data_keys(const Section<DataOptions>& data) {
  const auto speech = names_of(data_types(), [](const DataType& t) { return t.kind == DataKind::speech; });
  const auto listed = names_of(data_types(), [](const DataType& t) { return t.has_parts; });
  const auto sounds = data.only(speech).part(&DataOptions::speech);
  const auto audio = sounds.part(&SpeechOptions::audio);
  const auto buckets = sounds.part(&SpeechOptions::buckets);
  sounds
      .add("train", &SpeechOptions::train,
           "Parts of `path` to train on: folders of `librispeech` (none: all `train-*`), files of `speech_manifest` "
           "(none: `train.jsonl`)")
      .only(listed)
      .matches(".+")
      .free_on_resume();
  sounds
      .add("test", &SpeechOptions::test,
           "Parts of `path` to measure by; none: `test-clean` of `librispeech`, `test.jsonl` of `speech_manifest`")
      .only(listed)
      .matches(".+")
      .free_on_resume();
  sounds.add("alphabet", &SpeechOptions::alphabet, "Characters that transcripts have, and the model writes")
      .matches(".+");
  audio.add("sample_rate", &AudioOptions::sample_rate, "Samples per second that the model hears")
      .at_least(100)
      .at_most(1000000);
  audio.add("resample", &AudioOptions::resample, "Convert recordings of another rate; false: they are bad examples");
  audio
      .add("max_seconds", &AudioOptions::max_seconds,
           "Longer recordings are bad examples: the longest decides on the memory")
      .more_than(0)
      .at_most(3600);
  sounds.add("on_bad_example", &SpeechOptions::on_bad_example,
             "A recording or transcript that cannot be used: `refuse` ends the run with its name, `skip` leaves it out "
             "and says so");
  add_feature_keys(sounds.section("features", &SpeechOptions::features));
  add_augment_keys(sounds.section("augment", &SpeechOptions::augment));
  buckets
      .add("bucket_batches", &BucketOptions::bucket_batches,
           "Steps whose utterances are sorted by length together; more: less padding, and less shuffling")
      .at_least(1)
      .at_most(1000000);
  buckets
      .add("sorted_epochs", &BucketOptions::sorted_epochs,
           "The first so many epochs go from short utterances to long ones, on which CTC starts more steadily")
      .at_least(0)
      .at_most(1000000);
}

}  // namespace dgc
