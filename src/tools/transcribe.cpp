#include "tools/transcribe.h"

#include "data/speech/audio.h"
#include "data/speech/bad_example.h"
#include "models/executors.h"
#include "run/run_directory.h"
#include "tasks/make.h"
#include "tasks/make_speech.h"
#include "tensor/errors.h"
#include "tools/each_file.h"
#include "tools/loaded_model.h"
#include "train/steps/batch_input.h"

namespace dgc {
namespace {

// Turns recordings into features as the run's data does.
class Ear {
 public:
  explicit Ear(const Config& config)
      : audio_(config.data.speech.audio), scratch_(config.data.speech.features, audio_.sample_rate) {}

  // Fills a batch of one stream.
  void hear(const std::string& file, Batch& batch) {
    read_audio(file, audio_, scratch_.audio, scratch_.samples);
    FeatureExtractor& extractor = scratch_.extractor;
    if (std::ssize(scratch_.samples) < extractor.window()) {
      throw_bad_example("{}: its {} samples are fewer than the {} of one frame; give a longer recording", file,
                        scratch_.samples.size(), extractor.window());
    }
    extractor.compute(scratch_.samples, 1.0, batch.values);
    batch.lengths = {static_cast<int32_t>(std::ssize(batch.values) / extractor.features())};
    batch.labels = {0, 0};
  }

 private:
  AudioOptions audio_;
  SpeechScratch scratch_;
};

class Listener {
 public:
  Listener(const Config& config, const Checkpoint& checkpoint) : model_(config, checkpoint, speech_sample(config, 1)) {}

  // Each recording has its own length, so memory is planned for each.
  FrameScores logits(const Batch& batch) {
    const int64_t frames = batch.lengths[0];
    BatchInput input(*model_.backend, model_.network, {.rows = frames, .most_labels = 1}, DType::f32);
    Executor executor(model_.network, *model_.backend, frames, Executor::Mode::evaluation);
    const Buffer activations(model_.backend->device(), executor.activation_bytes());
    executor.attach(activations.data());
    input.stage(batch);
    input.arrive();
    const View output =
        executor.forward(model_.weights, model_.statistics, input.x(), {.training = false, .lengths = input.lengths()});
    logits_.take(*model_.backend, output, model_.network.loss().frames_per_step());
    return logits_.of(0, frames);
  }

 private:
  LoadedModel model_;
  HostLogits logits_;
};

Config speech_config(const std::filesystem::path& run, const std::vector<std::string>& overrides) {
  Config config = run_config(run, overrides);
  if (config.model.type == "deep_speech") return config;
  throw_user_error("{} is not the run of a speech model (model.type \"deep_speech\"): it cannot hear", run.string());
}

}  // namespace

void transcribe(const std::filesystem::path& run, const std::vector<std::string>& files,
                const TranscribeOptions& options,
                const std::function<void(const std::string&, const std::string&)>& told) {
  const Config config = speech_config(run, options.overrides);
  const Checkpoint checkpoint = require_checkpoint(run);
  const Alphabet alphabet(config.data.speech.alphabet);
  const SpeechDecoder decoder(alphabet, options.decoding);
  Listener listener(config, checkpoint);
  Ear ear(config);
  Batch batch;
  for_each_file(files, [&](const std::string& file) {
    ear.hear(file, batch);
    told(file, decoder.text(listener.logits(batch)));
  });
}

}  // namespace dgc
