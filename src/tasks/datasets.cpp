#include "tasks/datasets.h"

#include <spdlog/spdlog.h>

#include "data/text/text.h"
#include "run/vocabulary_file.h"
#include "tasks/make.h"
#include "tasks/make_speech.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

Vocabulary make_vocabulary(const TextDataOptions& o) {
  if (!o.vocabulary.empty()) return read_vocabulary({o.vocabulary, "data.vocabulary"});
  return build_vocabulary({o.train, "data.train"}, o.vocabulary_size);
}

std::unique_ptr<Dataset> make_text(const TextOptions& options, const Vocabulary& vocabulary) {
  return std::make_unique<Text>(options, vocabulary);
}

void open_test_texts(const Config& config, Datasets& sets) {
  const TextDataOptions& o = config.data.text;
  const auto open = [&](const TextFile& file) {
    return make_text({.file = file, .streams = o.eval_streams, .limit = config.data.test_limit}, *sets.vocabulary);
  };
  sets.valid = open({o.valid, "data.valid"});
  sets.test = open({o.test, "data.test"});
}

// Of images or speech.
std::unique_ptr<Dataset> make_set(const Config& config, Split split) {
  if (is_speech(config)) return make_speech(config, split);
  return make_images(config, split);
}

}  // namespace

void require_alike(const Dataset& train, const Dataset& other, const char* name, const char* key) {
  const std::vector<Trait> wanted = train.traits(), there = other.traits();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (there.at(i) == wanted[i]) continue;
    throw_user_error("{}: the {} is {} in the training set, but {} in the {} set, and one model reads both", key,
                     wanted[i].name, wanted[i].value, there[i].value, name);
  }
}

void tell_remarks(const Datasets& sets) {
  const std::pair<const Dataset*, const char*> all[] = {
      {sets.train.get(), "training"}, {sets.valid.get(), "validation"}, {sets.test.get(), "test"}};
  for (const auto& [set, name] : all) {
    if (set == nullptr) continue;
    for (const std::string& remark : set->remarks()) spdlog::warn("the {} set: {}", name, remark);
  }
}

Datasets make_datasets(const Config& config) {
  Datasets sets;
  if (!is_text(config)) {
    sets.train = make_set(config, Split::train);
    sets.test = make_set(config, Split::test);
    require_alike(*sets.train, *sets.test, "test", "data.path");
    return sets;
  }
  sets.vocabulary = make_vocabulary(config.data.text);
  sets.train = make_text({.file = {config.data.text.train, "data.train"},
                          .streams = config.training.batch_per_worker,
                          .limit = config.data.train_limit},
                         *sets.vocabulary);
  open_test_texts(config, sets);
  require_alike(*sets.train, *sets.valid, "validation", "data.valid");
  require_alike(*sets.train, *sets.test, "test", "data.test");
  return sets;
}

Datasets make_test_datasets(const Config& config, const std::filesystem::path& run) {
  Datasets sets;
  if (!is_text(config)) {
    sets.test = make_set(config, Split::test);
    return sets;
  }
  sets.vocabulary = run_vocabulary(run);
  open_test_texts(config, sets);
  return sets;
}

Config with_vocabulary(Config config, const Datasets& sets) {
  if (sets.vocabulary && config.model.lstm.vocabulary == 0) config.model.lstm.vocabulary = sets.vocabulary->size();
  return config;
}

}  // namespace dgc
