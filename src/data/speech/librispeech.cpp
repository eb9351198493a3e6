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

// The paths are sorted, so that the order does not depend on the file system.
std::vector<std::string> transcripts_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  std::set<fs::path> seen = {fs::canonical(folder, error)};  // a link may lead to a folder that is read already
  const auto options = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator it(folder, options, error), end; !error && it != end; it.increment(error)) {
    std::error_code none;
    if (it->is_directory(none) && !seen.insert(fs::canonical(it->path(), none)).second) it.disable_recursion_pending();
    std::string path = it->path().string();
    if (path.ends_with(".trans.txt")) paths.push_back(std::move(path));
  }
  if (error) throw_user_error("{}: cannot list the folder: {}", folder, error.message());
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
