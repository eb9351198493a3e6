#include <algorithm>
#include <filesystem>
#include <set>

#include "data/file.h"
#include "data/speech/open_speech.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibriSpeechFix = "set data.path to the folder LibriSpeech, as its archives unpack";

// Adds the paths of the transcripts below a folder. `seen` are folders that are not entered, as a link may lead to one
// that is read already, or to what holds the whole.
void add_transcripts(const fs::path& folder, std::set<fs::path>& seen, std::vector<std::string>& paths) {
  // Names are sorted, as which of two names of a folder counts must not depend on the file system.
  for (const std::string& name : names_in(folder.string(), [](const fs::directory_entry&) { return true; })) {
    const fs::path entry = folder / name;
    if (name.ends_with(".trans.txt")) paths.push_back(entry.string());
    std::error_code error;
    if (fs::is_directory(entry, error) && seen.insert(fs::canonical(entry, error)).second) {
      add_transcripts(entry, seen, paths);
    }
  }
}

// The paths are sorted, so that the order does not depend on the file system.
std::vector<std::string> transcripts_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::set<fs::path> seen;
  std::error_code error;
  for (fs::path above = fs::canonical(folder, error); !above.empty(); above = above.parent_path()) {
    seen.insert(above);
    if (above == above.parent_path()) break;
  }
  add_transcripts(folder, seen, paths);
  if (paths.empty()) throw_user_error("{}: there is no .trans.txt file below it; {}", folder, kLibriSpeechFix);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> usual_parts(const std::string& root, Split split) {
  if (split != Split::train) return {"test-clean"};
  const auto is_to_train_on = [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("train-") || name.find('.') != std::string::npos) return false;  // an archive has a dot
    return is_folder(entry);
  };
  std::vector<std::string> parts = names_in(root, is_to_train_on);
  if (!parts.empty()) return parts;
  throw_user_error(
      "{}: there is no folder train-... in it; set data.path to the folder LibriSpeech, or data.train to "
      "the folders to train on",
      root);
}

}  // namespace

std::vector<Utterance> list_librispeech(const std::string& root, const std::vector<std::string>& parts, Split split) {
  require_folder(root, kLibriSpeechFix);
  std::vector<Utterance> out;
  for (const std::string& part : parts.empty() ? usual_parts(root, split) : parts) {
    const std::string place = fmt::format("{}/{}", root, part);
    require_folder(place, kLibriSpeechFix);
    for (const std::string& path : transcripts_below(place)) {
      const std::string folder = fs::path(path).parent_path().string();
      for_each_line(path, kLibriSpeechFix, [&](const std::string& line, const std::string& where) {
        if (line.empty()) return;
        const size_t space = line.find(' ');
        const std::string id = line.substr(0, space);
        if (id.empty()) throw_user_error("{}: it does not begin with an utterance's name", where);
        std::string text = space == std::string::npos ? "" : line.substr(space + 1);
        out.push_back({fmt::format("{}: {}", path, id), fmt::format("{}/{}.flac", folder, id), std::move(text), 0});
      });
    }
  }
  if (out.empty()) throw_user_error("{}: it holds no utterances; {}", root, kLibriSpeechFix);
  return out;
}

}  // namespace dgc
