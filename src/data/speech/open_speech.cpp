#include "data/speech/open_speech.h"

#include <algorithm>
#include <filesystem>

#include "data/file.h"
#include "data/speech/utterances.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> train_folders(const std::string& root) {
  require_folder(root, "set data.path to the folder LibriSpeech, as its archives unpack");
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("train-")) names.push_back(std::move(name));
  }
  if (error) throw_user_error("{}: cannot list the folder: {}", root, error.message());
  if (names.empty()) {
    throw_user_error(
        "{}: there is no folder train-... in it; set data.path to the folder LibriSpeech, or data.train to "
        "the folders to train on",
        root);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Utterance> librispeech(const SpeechDatasetOptions& o, Split split) {
  const std::vector<std::string>& parts = split == Split::train ? o.train : o.test;
  if (!parts.empty()) return read_librispeech(o.path, parts);
  return read_librispeech(o.path,
                          split == Split::train ? train_folders(o.path) : std::vector<std::string>{"test-clean"});
}

std::vector<Utterance> manifests(const SpeechDatasetOptions& o, Split split) {
  const bool train = split == Split::train;
  std::vector<std::string> parts = train ? o.train : o.test;
  if (parts.empty()) parts.emplace_back(train ? "train.jsonl" : "test.jsonl");
  std::vector<Utterance> all;
  for (const std::string& part : parts) {
    std::vector<Utterance> some = read_speech_manifest((fs::path(o.path) / part).string());
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Utterance> utterances(const SpeechDatasetOptions& o, Split split) {
  if (o.type == "librispeech") return librispeech(o, split);
  if (o.type == "speech_manifest") return manifests(o, split);
  if (o.type != "an4") throw_user_error("data.type: \"{}\" is none of an4, librispeech, speech_manifest", o.type);
  if (!o.train.empty() || !o.test.empty()) throw_user_error("data.train and data.test: an4 has its own two lists");
  return read_an4(o.path, split);
}

}  // namespace

std::unique_ptr<SpeechCorpus> open_speech(const SpeechDatasetOptions& o, Split split) {
  std::vector<Utterance> listed = utterances(o, split);
  if (o.limit) listed.resize(std::min(listed.size(), static_cast<size_t>(*o.limit)));
  return std::make_unique<SpeechCorpus>(std::move(listed), Alphabet(o.alphabet), o.corpus);
}

}  // namespace dgc
