#include "tools/generate.h"

#include <spdlog/spdlog.h>

#include "run/vocabulary_file.h"
#include "tensor/rng.h"
#include "tools/choose_word.h"
#include "tools/loaded_model.h"

namespace dgc {

void generate(const std::filesystem::path& run, const GenerateOptions& options,
              const std::function<void(std::string_view)>& told) {
  const Config config =
      config_of_kind(run, options.overrides, DataKind::text,
                     "is not the run of a language model (model.type \"lstm_lm\"): it has nothing to generate");
  FoundCheckpoint checkpoint([&] { return newest_model(run); });
  const Vocabulary vocabulary = run_vocabulary(run);
  require_same_vocabulary(*checkpoint, vocabulary);
  const LoadedModel model(config, checkpoint, {1});
  LoadedExecutor executor(model, {.rows = 1});
  Batch batch;
  batch.labels = {0};
  // How likely each word is to be the next behind this one, as logits.
  const auto behind = [&](int32_t word) {
    batch.tokens = {word};
    return executor.logits(batch);
  };
  // A model may have room for more words than the vocabulary has.
  const auto known = static_cast<size_t>(vocabulary.size());

  std::span<const float> next = behind(vocabulary.number(kEndOfLine));
  const auto read = [&](std::string_view word) {
    if (!vocabulary.knows(word)) spdlog::warn("--prompt: the model does not know \"{}\"", word);
    told(word);
    next = behind(vocabulary.number(word));
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
    next = behind(word);
  }
}

}  // namespace dgc
