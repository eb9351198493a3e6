#include <algorithm>
#include <filesystem>
#include <set>

#include "data/file.h"
#include "data/speech/utterances.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibriSpeechFix = "set data.path to the folder LibriSpeech, as its archives unpack";

// Adds the paths of the transcripts below a folder. `seen` are folders that are not entered, as a link may lead to one
// that is read already, or to what holds the whole.
void add_transcripts(const fs::path& folder, std::set<fs::path>& seen, std::vector<std::string>& paths) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error) throw_user_error("{}: cannot list the folder: {}", folder.string(), error.message());
  std::ranges::sort(entries);  // which of two names of a folder counts must not depend on the file system
  for (const fs::path& entry : entries) {
    if (entry.string().ends_with(".trans.txt")) paths.push_back(entry.string());
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

}  // namespace

std::vector<Utterance> read_librispeech(const std::string& root, const std::vector<std::string>& subsets) {
  require_folder(root, kLibriSpeechFix);
  std::vector<Utterance> out;
  for (const std::string& subset : subsets) {
    const std::string place = fmt::format("{}/{}", root, subset);
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
