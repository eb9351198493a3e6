#include "config/config.h"

#include <filesystem>

#include "config/complete.h"
#include "config/key_paths.h"
#include "config/objects.h"
#include "tensor/errors.h"
#include "tensor/utf8.h"

namespace dgc {
namespace {

// Keys that earlier versions had and nothing ever read, and why they are gone.
struct GoneKey {
  const char *name, *reason;
};
constexpr GoneKey kGoneKeys[] = {{"deterministic", "every run is"}};

void refuse_gone_keys(const Json& root, const Origin& origin) {
  for (const GoneKey& key : kGoneKeys) {
    if (root.contains(key.name)) {
      origin.refuse(key.name, fmt::format("there is no such key any more ({}); leave it out", key.reason));
    }
  }
}

bool is_text_key(const std::string& path) {
  return std::any_of(config_keys().begin(), config_keys().end(),
                     [&](const Key& key) { return key.path == path && key.kind == Kind::text; });
}

Json override_value(const std::string& path, const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool meant_as_json = (text.starts_with('{') || text.starts_with('[')) && !is_text_key(path);
  // parse_json says what is wrong, and refuses repeated keys.
  if (value.is_structured() || (value.is_discarded() && meant_as_json)) return parse_json(text, "--set " + path);
  if (value.is_discarded()) return text;
  const bool is_other = !value.is_string() && !value.is_null();
  return is_text_key(path) && is_other ? Json(text) : value;  // --set name=2024 sets the string "2024"
}

void apply_override(Json& root, const std::string& text, Origin& origin) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw_user_error("--set {}: write it as KEY=VALUE", text);
  const std::string path = text.substr(0, equals);
  if (path.front() == '.' || path.back() == '.' || path.find("..") != std::string::npos) {
    throw_user_error("--set {}: {} is no key; write it as in optimizer.sparsity=0.99", text, path);
  }
  origin.overrides.emplace_back(path, text);
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    const Json* section = find_path(root, path.substr(0, dot));
    if (section && !section->is_object()) origin.refuse(path, fmt::format("{} is no section", path.substr(0, dot)));
  }
  set_path(root, path, override_value(path, text.substr(equals + 1)));
}

// Compares the leaves of two objects; lists of objects count as objects with keys [0], [1], ...
void compare(const Json& a, const Json& b, const std::string& path, std::vector<ConfigDifference>& out) {
  if (a == b) return;
  const auto is_tree = [](const Json& v) { return v.is_object() || (v.is_array() && !v.empty() && v[0].is_object()); };
  if (!is_tree(a) && !is_tree(b)) {
    out.push_back({path, a.is_discarded() ? "" : json_text(a), b.is_discarded() ? "" : json_text(b)});
    return;
  }
  static const Json kAbsent(Json::value_t::discarded);
  if (a.is_array() || b.is_array()) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const auto entry = [i](const Json& v) -> const Json& { return v.is_array() && i < v.size() ? v[i] : kAbsent; };
      compare(entry(a), entry(b), fmt::format("{}[{}]", path, i), out);
    }
    return;
  }
  const auto member = [](const Json& v, const std::string& name) -> const Json& {
    return v.is_object() && v.contains(name) ? v[name] : kAbsent;
  };
  std::vector<std::string> names;
  for (const Json* side : {&a, &b}) {
    if (!side->is_object()) continue;
    for (const auto& [name, value] : side->items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  for (const auto& name : names) compare(member(a, name), member(b, name), join_path(path, name), out);
}

Json parse_root(const std::string& text, const Origin& origin) {
  Json root = parse_json(text, origin.file);
  if (!root.is_object()) origin.refuse("", fmt::format("must be an object, not {}", json_type_name(root)));
  if (root.contains("runs") && !root.contains("model")) origin.refuse("", "this is a study: dgc study trains it");
  root.erase("$schema");  // says to an editor where the schema is
  return root;
}

void apply_overrides(Json& root, const std::vector<std::string>& overrides, Origin& origin) {
  for (const auto& override_text : overrides) apply_override(root, override_text, origin);
}

Config to_config(const Json& root, const Origin& origin) {
  refuse_gone_keys(root, origin);
  check_object(config_keys(), root, "", origin);
  Config config;
  read_object(config_keys(), root, &config);
  try {
    complete(config, origin);
  } catch (const KeyError& error) {
    origin.refuse(error.key, error.sentence);
  }
  return config;
}

}  // namespace

Config parse_config(const std::string& text, const std::string& origin, const std::vector<std::string>& overrides) {
  Origin written{origin};
  Json root = parse_root(text, written);
  apply_overrides(root, overrides, written);
  Config config = to_config(root, written);
  require_meant(config, written);
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    throw_user_error("{}: this is a folder, and a config file is needed; of a run, give {}", path,
                     (std::filesystem::path(path) / "config.json").string());
  }
  return parse_config(read_text_file(path, kMostConfigBytes), path, overrides);
}

Config load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  Origin written{path};
  Json root = parse_root(read_text_file(path, kMostConfigBytes), written);
  for (const GoneKey& key : kGoneKeys) root.erase(key.name);
  // Runs on made-up images once had keys of an augmentation that these never got.
  const auto data = root.find("data");
  if (data != root.end() && data->is_object() && data->contains("type") && data->at("type") == "synthetic") {
    data->erase("augment");
  }
  apply_overrides(root, overrides, written);
  return to_config(root, written);
}

std::string resolved_json(const Config& config) { return json_text(write_object(config_keys(), &config), 2) + "\n"; }

std::vector<ConfigDifference> config_differences(const Config& a, const Config& b) {
  std::vector<ConfigDifference> out;
  compare(write_object(config_keys(), &a), write_object(config_keys(), &b), "", out);
  std::erase_if(out, [](const auto& d) { return d.path == "name" || d.path == "output"; });
  return out;
}

Config with_absolute_paths(Config config) {
  for (const Key& key : config_keys()) {
    if (!key.path_on_disk) continue;
    const std::string path = key.get(&config).get<std::string>();
    std::error_code error;
    const std::filesystem::path found = std::filesystem::absolute(path, error);
    if (path.empty() || error) continue;
    const std::string absolute = found.lexically_normal().string();
    if (find_invalid_utf8(absolute)) {
      throw_user_error("{}: {} is not UTF-8, and so config.json could not hold it; rename that folder", key.path,
                       absolute);
    }
    key.set(&config, absolute);
  }
  return config;
}

bool is_free_on_resume(const std::string& path) {
  return std::ranges::any_of(config_keys(), [&](const Key& key) { return key.path == path && key.free; });
}

}  // namespace dgc
