#include "run/vocabulary_file.h"

#include <algorithm>

#include "run/file_io.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr const char* kFix = "resume with the data.train, data.vocabulary and data.vocabulary_size that it began with";

}  // namespace

std::string vocabulary_xxh64(const Vocabulary& vocabulary) {
  const std::string text = vocabulary.text();
  return xxh64_hex(text);
}

void save_vocabulary(const std::filesystem::path& run, const Vocabulary& vocabulary) {
  write_if_changed(run / kVocabularyFile, vocabulary.text());
}

void require_run_vocabulary(const std::filesystem::path& run, const Vocabulary& vocabulary) {
  const std::filesystem::path path = run / kVocabularyFile;
  if (!std::filesystem::exists(path)) return;
  const std::vector<std::string> there = run_vocabulary(run).words();
  if (there == vocabulary.words()) return;
  const auto word = [](const std::vector<std::string>& words, size_t i) {
    return i < words.size() ? "\"" + words[i] + "\"" : std::string("nothing");
  };
  size_t first = 0;
  while (first < std::min(there.size(), vocabulary.words().size()) && there[first] == vocabulary.words()[first])
    ++first;
  throw_user_error("{}: this run's vocabulary is another one: word {} is {} there, and {} now; {}", path.string(),
                   first + 1, word(there, first), word(vocabulary.words(), first), kFix);
}

Vocabulary run_vocabulary(const std::filesystem::path& run) {
  return read_vocabulary({(run / kVocabularyFile).string(), ""});
}

void require_same_vocabulary(const Checkpoint& checkpoint, const Vocabulary& vocabulary) {
  if (checkpoint.manifest().values.text(kVocabulary) == vocabulary_xxh64(vocabulary)) return;
  throw_user_error(
      "checkpoint {} was trained with another vocabulary than these {} words; use the run's own {} as it was, or {}",
      checkpoint.path().string(), vocabulary.size(), kVocabularyFile, kFix);
}

}  // namespace dgc
