#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "data/file.h"
#include "data/speech/alphabet.h"
#include "data/speech/open_speech.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAn4Fix = "set data.path to the folder of AN4 that holds etc and wav";

// "<s> GO </s> (an253-fash-b)" -> {"GO", "an253-fash-b"}
struct Line {
  std::string text, id;
};

Line parse(const std::string& line, const std::string& where) {
  const std::string clean = single_spaced(line);
  const size_t open = clean.rfind('(');
  if (open == std::string::npos || !clean.ends_with(')') || clean.size() < open + 3) {
    throw_user_error("{}: it does not end with an utterance's name in parentheses", where);
  }
  std::string_view text(clean.data(), open);
  if (text.starts_with("<s>")) text.remove_prefix(3);
  if (const size_t end = text.rfind("</s>"); end != std::string_view::npos && end + 5 >= text.size()) {
    text = text.substr(0, end);
  }
  return {single_spaced(text), clean.substr(open + 1, clean.size() - open - 2)};
}

// The copies of AN4 differ in how the recordings are packed.
std::string sound_path(const std::string& stem) {
  std::error_code error;
  for (const char* extension : {".sph", ".wav", ".flac"}) {
    if (fs::exists(stem + extension, error)) return stem + extension;
  }
  return stem + ".sph";
}

}  // namespace

std::vector<Utterance> list_an4(const std::string& root, const std::vector<std::string>& parts, Split split) {
  DGC_CHECK(parts.empty(), "parts of AN4");
  require_folder(root, kAn4Fix);
  const std::string list = root + "/etc/an4_" + (split == Split::train ? "train" : "test");
  std::map<std::string, std::string> texts;
  for_each_line(list + ".transcription", kAn4Fix, [&](const std::string& line, const std::string& where) {
    if (line.empty()) return;
    Line parsed = parse(line, where);
    if (!texts.emplace(parsed.id, parsed.text).second) {
      throw_user_error("{}: there is a transcript of {} already", where, parsed.id);
    }
  });
  std::set<std::string> listed;
  std::vector<Utterance> out;
  for_each_line(list + ".fileids", kAn4Fix, [&](const std::string& line, const std::string& where) {
    const std::string file = single_spaced(line);
    if (file.empty()) return;
    const std::string id = fs::path(file).filename().string();
    if (!listed.insert(id).second) throw_user_error("{}: {} is listed already; remove one of the two lines", where, id);
    const auto text = texts.find(id);
    if (text == texts.end()) throw_user_error("{}: {}.transcription has no transcript of {}", where, list, id);
    out.push_back({fmt::format("{}.transcription: {}", list, id), sound_path(root + "/wav/" + file), text->second, 0});
  });
  if (out.empty()) throw_user_error("{}.fileids: it lists no utterances; {}", list, kAn4Fix);
  return out;
}

}  // namespace dgc
