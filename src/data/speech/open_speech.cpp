#include "data/speech/open_speech.h"

#include <algorithm>
#include <filesystem>

#include "data/file.h"
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
    if (!name.starts_with("train-") || name.find('.') != std::string::npos) continue;  // an archive has a dot
    if (is_folder(*it)) names.push_back(std::move(name));
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

}  // namespace

std::vector<Utterance> list_an4(const std::string& path, const std::vector<std::string>& parts, Split split) {
  DGC_CHECK(parts.empty(), "parts of AN4");
  return read_an4(path, split);
}

std::vector<Utterance> list_librispeech(const std::string& path, const std::vector<std::string>& parts, Split split) {
  if (!parts.empty()) return read_librispeech(path, parts);
  return read_librispeech(path, split == Split::train ? train_folders(path) : std::vector<std::string>{"test-clean"});
}

std::vector<Utterance> list_manifests(const std::string& path, const std::vector<std::string>& parts, Split split) {
  if (parts.empty()) return list_manifests(path, {split == Split::train ? "train.jsonl" : "test.jsonl"}, split);
  std::vector<Utterance> all;
  for (const std::string& part : parts) {
    std::vector<Utterance> some = read_speech_manifest((fs::path(path) / part).string());
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace dgc
