#include <filesystem>

#include "data/file.h"
#include "data/speech/alphabet.h"
#include "data/speech/open_speech.h"
#include "json/lines.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

std::string need_text(const Row& row, const std::string& key, const std::string& where) {
  const auto value = row.text(key);
  if (!value) throw_user_error("{}: it needs a text \"{}\"", where, key);
  return *value;
}

double duration(const Row& row, const std::string& where) {
  const RowValue* value = row.find("duration");
  if (value == nullptr || std::holds_alternative<std::nullptr_t>(*value)) return 0;
  const auto seconds = row.number("duration");
  if (!seconds || !(*seconds > 0)) throw_user_error("{}: \"duration\" must be a positive number of seconds", where);
  return *seconds;
}

std::vector<Utterance> read(const std::string& path) {
  const std::string fix =
      "set data.path to the folder of the manifests, train.jsonl and test.jsonl or what data.train and data.test name, "
      "with a JSON object per line that has path and text";
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<Utterance> out;
  for_each_line(path, fix, [&](const std::string& line, const std::string& where) {
    if (single_spaced(line).empty()) return;
    const Row row = read_json_line(line, where, {"path", "text", "duration"});
    const std::string sound = need_text(row, "path", where);
    if (sound.find('\0') != std::string::npos) throw_user_error("{}: \"path\" has a NUL in it", where);
    out.push_back({fmt::format("{} ({})", where, sound), (folder / sound).string(), need_text(row, "text", where),
                   duration(row, where)});
  });
  if (out.empty()) throw_user_error("{}: it lists no utterances; {}", path, fix);
  return out;
}

}  // namespace

std::vector<Utterance> list_manifests(const std::string& root, const std::vector<std::string>& parts, Split split) {
  if (parts.empty()) return list_manifests(root, {split == Split::train ? "train.jsonl" : "test.jsonl"}, split);
  std::vector<Utterance> all;
  for (const std::string& part : parts) {
    std::vector<Utterance> some = read((std::filesystem::path(root) / part).string());
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace dgc
