#include "train/generate.h"

#include <spdlog/spdlog.h>

#include "models/executor.h"
#include "tensor/errors.h"
#include "tensor/rng.h"
#include "train/choose_word.h"
#include "train/make.h"
#include "train/ranks.h"
#include "train/run_directory.h"
#include "train/vocabulary_file.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

// A language model that reads one text, a word at a time.
class Reader {
 public:
  Reader(const Config& config, const Checkpoint& checkpoint)
      : backend_(make_backend(config.device, static_cast<int>(config.threads))),
        device_(backend_->device()),
        network_(make_network(config.model, {1})),
        params_(network_.params()),
        buffers_(network_.buffers()),
        state_layout_(network_.state()),
        weights_(device_, params_),
        statistics_(device_, buffers_),
        state_(device_, state_layout_),
        executor_(network_, *backend_, 1, Executor::Mode::evaluation),
        activations_(device_, executor_.activation_bytes()),
        token_(device_, sizeof(int32_t)),
        logits_(static_cast<size_t>(config.model.lstm.vocabulary)),
        device_logits_(device_, logits_.size() * sizeof(float)) {
    load_weights(checkpoint, weights_, statistics_);
    executor_.attach(activations_.data());
  }

  // Returns how likely each word is to be the next, as logits.
  std::span<const float> read(int32_t word) {
    device_->copy_in(token_.data(), &word, sizeof(word));
    executor_.forward(weights_, statistics_, {token_.data(), network_.shape(0, 1), DType::i32},
                      {.training = false, .state = &state_});
    executor_.logits(weights_, 0, {device_logits_.data(), {1, std::ssize(logits_)}});
    device_->copy_out(logits_.data(), device_logits_.data(), device_logits_.bytes());
    return logits_;
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<Device> device_;
  Network network_;
  ParamLayout params_, buffers_, state_layout_;
  Arena weights_, statistics_, state_;
  Executor executor_;
  Buffer activations_, token_;
  std::vector<float> logits_;
  Buffer device_logits_;
};

Config language_config(const std::filesystem::path& run, const std::vector<std::string>& overrides) {
  const Config config = run_config(run, overrides);
  if (config.model.type == ModelType::lstm_lm) return config;
  throw_user_error("{} is not the run of a language model (model.type \"lstm_lm\"): it has nothing to generate",
                   run.string());
}

}  // namespace

void generate(const std::filesystem::path& run, const GenerateOptions& options,
              const std::function<void(std::string_view)>& told) {
  const Config config = language_config(run, options.overrides);
  const std::optional<Checkpoint> checkpoint = newest_checkpoint(run);
  if (!checkpoint) throw_user_error("{} has no checkpoint to generate from", run.string());
  const Vocabulary vocabulary = run_vocabulary(run);
  require_same_vocabulary(*checkpoint, vocabulary);
  Reader reader(config, *checkpoint);
  // A model may have room for more words than there are.
  const auto known = static_cast<size_t>(vocabulary.size());

  std::span<const float> next = reader.read(vocabulary.number(kEndOfLine));
  split_words(options.prompt, [&](std::string_view word) {
    if (!vocabulary.knows(word)) spdlog::warn("--prompt: the model does not know \"{}\"", word);
    told(word);
    next = reader.read(vocabulary.number(word));
  });
  const Philox random(options.seed, rng_stream("generate", "words"));
  for (int64_t i = 0; i < options.words; ++i) {
    const int32_t word = choose_word(next.first(known), {.temperature = options.temperature,
                                                         .uniform = random.uniform(static_cast<uint64_t>(i)),
                                                         .never = vocabulary.number(kUnknownWord)});
    told(vocabulary.word(word));
    next = reader.read(word);
  }
}

}  // namespace dgc
