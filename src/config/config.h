#pragma once

#include <string>
#include <vector>

#include "config/options.h"

namespace dgc {

inline constexpr size_t kMostConfigBytes = size_t{1} << 24;  // no longer file is read

// Reads, checks and completes a config. Everything is checked before anything is built: syntax (with line and column),
// repeated and unknown keys (with the nearest name), types, ranges, and what keys demand of one another. Throws
// UserError: one sentence that names the file and the key's JSON path.
//
// An override is "a.b.c=VALUE", as given to --set: VALUE is JSON where it parses, and a string otherwise; of a key
// that is a string it is the string as it stands, but for null, lists, objects and what is quoted. An override is put
// into the JSON before the checks, so it is checked like the rest.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {});

// Works as load_config(), for the config.json of a run, which an earlier version may have written: keys that never had
// an effect and have been removed are ignored here, and refused by load_config().
Config load_run_config(const std::string& path, const std::vector<std::string>& overrides = {});

// Works as load_config(), for the text of a config. `origin` stands for the file in messages, and names the run if the
// config does not.
Config parse_config(const std::string& text, const std::string& origin, const std::vector<std::string>& overrides = {});

// The config as JSON: every key that applies, defaults included, in a fixed order. parse_config() makes the same config
// of it.
std::string resolved_json(const Config& config);

std::string json_schema();                // draft 2020-12
std::string config_reference_markdown();  // one table per section: key, type, default, range, meaning

// A key in which two configs differ; the values as JSON, "" where a config has no such key. `name` and `output` are
// left out: they name a run and change nothing in it.
struct ConfigDifference {
  std::string path, a, b;
  bool operator==(const ConfigDifference&) const = default;
};
std::vector<ConfigDifference> config_differences(const Config& a, const Config& b);

// The config with every relative path of its keys, but for `output`, seen from the current folder. Throws UserError
// that names the key when such a path is not UTF-8.
Config with_absolute_paths(Config);

// Whether a run may be resumed with another value of the key, as a rule; require_resumable() has the exceptions.
bool is_free_on_resume(const std::string& path);

}  // namespace dgc
