#include <fmt/ranges.h>

#include "config/check_value.h"
#include "config/config.h"
#include "tensor/errors.h"

// The table of keys as Markdown, for configs/README.md.
namespace dgc {
namespace {

// "optimizer" of "optimizer.warmup.epochs"; "" of a key at the top.
std::string first_section(const std::string& path) {
  const size_t dot = path.find('.');
  return path.substr(0, dot == std::string::npos ? 0 : dot);
}

std::string allowed(const Key& key) {
  if (key.kind == Kind::choice) return quoted(key.choices, '`');
  std::string words = range_words(key);
  if ((key.kind == Kind::numbers || key.kind == Kind::integers) && !words.empty()) words = "each " + words;
  if (key.min_items > 0) words = fmt::format("{} or more{}{}", key.min_items, words.empty() ? "" : "; ", words);
  return words;
}

std::string default_words(const Key& key, const void* defaults) {
  if (key.required) return "**required**";
  const Json value = key.get(defaults);
  // The key's meaning says what an empty string does.
  if (value.is_string() && value.get_ref<const std::string&>().empty()) return "";
  return fmt::format("`{}`", json_text(value));
}

std::string table(const Keys& keys, const std::string& section, const void* defaults) {
  struct Row {
    std::string key, meaning;
    std::vector<std::string> types;
  };
  std::vector<Row> rows;  // keys that are the same for several types share a row
  for (const Key& key : keys) {
    if (first_section(key.path) != section) continue;
    const std::string meaning = fmt::format("{}{} | {} | {} | {}", kind_name(key.kind), key.nullable ? " or null" : "",
                                            default_words(key, defaults), allowed(key), key.doc);
    const auto same =
        std::ranges::find_if(rows, [&](const Row& row) { return row.key == key.path && row.meaning == meaning; });
    if (same == rows.end()) {
      rows.push_back({key.path, meaning, key.types});
    } else {
      same->types.insert(same->types.end(), key.types.begin(), key.types.end());
    }
  }
  std::string out = "| key | for types | kind | default | allowed | meaning |\n|---|---|---|---|---|---|\n";
  for (const Row& row : rows) {
    out += fmt::format("| `{}` | {} | {} |\n", row.key, fmt::join(row.types, ", "), row.meaning);
  }
  return out + "\n";
}

}  // namespace

std::string config_reference_markdown() {
  const Config config;
  const LayerOptions layer;
  std::string out = "### Top level\n\n" + table(config_keys(), "", &config);
  std::string last;
  for (const Key& key : config_keys()) {
    const std::string section = first_section(key.path);
    if (section.empty() || section == last) continue;
    out += "### " + section + "\n\n" + table(config_keys(), section, &config);
    last = section;
  }
  out += "### Entries of model.layers\n\n" + table(layer_keys(), "", &layer);
  out.pop_back();  // one newline at the end is enough
  return out;
}

}  // namespace dgc
