#include "tools/generate.h"

#include <spdlog/spdlog.h>

#include "models/executor.h"
#include "run/run_directory.h"
#include "run/vocabulary_file.h"
#include "tasks/make.h"
#include "tensor/errors.h"
#include "tensor/rng.h"
#include "tools/choose_word.h"
#include "tools/loaded_model.h"

namespace dgc {
namespace {

// A language model that reads one text, a word at a time.
class Reader {
 public:
  Reader(const Config& config, const Checkpoint& checkpoint)
      : model_(config, checkpoint, {1}),
        device_(model_.backend->device()),
        state_layout_(model_.network.state()),
        state_(device_, state_layout_),
        executor_(model_.network, *model_.backend, 1, Executor::Mode::evaluation),
        activations_(device_, executor_.activation_bytes()),
        token_(device_, sizeof(int32_t)),
        logits_(static_cast<size_t>(config.model.lstm.vocabulary)),
        device_logits_(device_, logits_.size() * sizeof(float)) {
    executor_.attach(activations_.data());
  }

  // Returns how likely each word is to be the next, as logits.
  std::span<const float> read(int32_t word) {
    device_->copy_in(token_.data(), &word, sizeof(word));
    executor_.forward(model_.weights, model_.statistics, {token_.data(), model_.network.shape(0, 1), DType::i32},
                      {.training = false, .state = &state_});
    executor_.logits(model_.weights, 0, {device_logits_.data(), {1, std::ssize(logits_)}});
    device_->copy_out(logits_.data(), device_logits_.data(), device_logits_.bytes());
    return logits_;
  }

 private:
  LoadedModel model_;
  std::shared_ptr<Device> device_;
  ParamLayout state_layout_;
  Arena state_;
  Executor executor_;
  Buffer activations_, token_;
  std::vector<float> logits_;
  Buffer device_logits_;
};

Config language_config(const std::filesystem::path& run, const std::vector<std::string>& overrides) {
  Config config = run_config(run, overrides);
  if (config.model.type == "lstm_lm") return config;
  throw_user_error("{} is not the run of a language model (model.type \"lstm_lm\"): it has nothing to generate",
                   run.string());
}

}  // namespace

void generate(const std::filesystem::path& run, const GenerateOptions& options,
              const std::function<void(std::string_view)>& told) {
  const Config config = language_config(run, options.overrides);
  const Checkpoint checkpoint = require_checkpoint(run);
  const Vocabulary vocabulary = run_vocabulary(run);
  require_same_vocabulary(checkpoint, vocabulary);
  if (vocabulary.size() > config.model.lstm.vocabulary) {
    throw_user_error("{}: its vocabulary has {} words, but model.vocabulary is {}", run.string(), vocabulary.size(),
                     config.model.lstm.vocabulary);
  }
  Reader reader(config, checkpoint);
  // A model may have room for more words than the vocabulary has.
  const auto known = static_cast<size_t>(vocabulary.size());

  std::span<const float> next = reader.read(vocabulary.number(kEndOfLine));
  const auto read = [&](std::string_view word) {
    if (!vocabulary.knows(word)) spdlog::warn("--prompt: the model does not know \"{}\"", word);
    told(word);
    next = reader.read(vocabulary.number(word));
  };
  for (std::string_view rest = options.prompt; !rest.empty();) {
    const size_t end = rest.find('\n');
    split_words(rest.substr(0, end), read);
    if (end == std::string_view::npos) break;
    read(kEndOfLine);
    rest.remove_prefix(end + 1);
  }
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
