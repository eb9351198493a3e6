#include "tools/transcribe.h"

#include "data/speech/reader.h"
#include "tasks/make_speech.h"
#include "tools/each_file.h"
#include "tools/loaded_model.h"

namespace dgc {
namespace {

// Turns recordings into features as the run's data does.
class Ear {
 public:
  explicit Ear(const SpeechOptions& options) : audio_(options.audio), scratch_(options) {}

  // Fills a batch of one stream.
  void hear(const std::string& file, Batch& batch) {
    read_recording(file, audio_, scratch_);
    FeatureExtractor& extractor = scratch_.extractor;
    extractor.compute(scratch_.samples, 1.0, batch.values);
    batch.lengths = {static_cast<int32_t>(std::ssize(batch.values) / extractor.features())};
    batch.labels = {0, 0};
  }

 private:
  AudioOptions audio_;
  SpeechScratch scratch_;
};

}  // namespace

void transcribe(const std::filesystem::path& run, const std::vector<std::string>& files,
                const TranscribeOptions& options,
                const std::function<void(const std::string&, const std::string&)>& told) {
  const Config config = config_of_kind(run, options.overrides, DataKind::speech,
                                       "is not the run of a speech model (model.type \"deep_speech\"): it cannot hear");
  FoundCheckpoint checkpoint([&] { return newest_model(run); });
  const Alphabet alphabet(config.data.speech.alphabet);
  const SpeechDecoder decoder(alphabet, options.decoding);
  const LoadedModel model(config, checkpoint, speech_sample(config, 1));
  Ear ear(config.data.speech);
  Batch batch;
  HostLogits logits;
  for_each_file(files, [&](const std::string& file) {
    ear.hear(file, batch);
    const int64_t frames = batch.lengths[0];
    // Each recording has its own length, so memory is planned for each.
    LoadedExecutor executor(model, {.rows = frames, .most_labels = 1});
    logits.take(*model.backend, executor.run(batch), model.network.loss().frames_per_step());
    told(file, decoder.text(logits.of(0, frames)));
  });
}

}  // namespace dgc
