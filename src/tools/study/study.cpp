#include "tools/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "config/config.h"
#include "config/key_paths.h"
#include "config/keys.h"
#include "config/synonyms.h"
#include "json/nearest.h"
#include "json/text.h"
#include "tasks/task.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostStudyBytes = size_t{1} << 24;  // size limit of a study file

bool is_of_config(const std::string& word) {
  const auto is_section = [&](const Key& key) { return is_inside(key.path, word); };
  return !key_called(word).empty() || std::ranges::any_of(config_keys(), is_section);
}

// An object of the study, which says where it stands when something in it is wrong.
class StudyObject {
 public:
  StudyObject(const Json& json, std::string file, std::string path)
      : json_(json), file_(std::move(file)), path_(std::move(path)) {
    if (!json.is_object()) refuse("", fmt::format("must be an object, not {}", json_type_name(json)));
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& sentence) const {
    const std::string at = key.empty() ? path_ : join_path(path_, key);
    throw_user_error("{}: {}{}{}", file_, at, at.empty() ? "" : ": ", sentence);
  }
  void allow(const std::vector<std::string>& keys) const {
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      const std::string meant = did_you_mean(key, keys);
      const bool other = meant.empty() && is_of_config(key);
      refuse(key, "there is no such key" + (other ? "; keys of the config stand in \"set\"" : meant));
    }
  }
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  StudyObject object(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) refuse(key, "is required");
    return {*value, file_, join_path(path_, key)};
  }
  std::optional<std::string> text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse(key, fmt::format("must be a text, not {}", json_type_name(*value)));
    return value->get<std::string>();
  }
  std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse(key, fmt::format("must be a number, not {}", json_type_name(*value)));
    return value->get<double>();
  }
  std::optional<std::vector<uint64_t>> seeds() const {
    const Json* value = find("seeds");
    if (value == nullptr) return std::nullopt;
    const auto is_seed = [](const Json& seed) { return seed.is_number_unsigned(); };
    if (!value->is_array() || value->empty() || !std::ranges::all_of(*value, is_seed)) {
      refuse("seeds", "must be a list of whole numbers, such as [1, 2, 3]");
    }
    auto seeds = value->get<std::vector<uint64_t>>();
    std::ranges::sort(seeds);
    if (std::ranges::adjacent_find(seeds) != seeds.end()) refuse("seeds", "has a number twice");
    return seeds;
  }
  std::vector<std::string> overrides() const {
    std::vector<std::string> all;
    if (find("set") == nullptr) return all;
    for (const auto& [key, value] : object("set").json_.items()) {
      if (key == "seed" || key == "name" || key == "output") refuse("set." + key, "the study itself sets it");
      all.push_back(key + "=" + json_text(value));
    }
    return all;
  }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string file_, path_;
};

StudyRun read_study_run(const StudyObject& run, const StudyObject& root, std::string name, const fs::path& folder) {
  static const std::regex folder_name("[A-Za-z0-9][A-Za-z0-9._-]{0,99}");
  if (!std::regex_match(name, folder_name)) {
    run.refuse("", "a run's name is that of a folder: letters, digits, '.', '-' and '_', and at most 100 of them");
  }
  if (name == kStudyReport) run.refuse("", "the study's report has this name; give the run another");
  run.allow({"config", "set", "seeds", "reference", "published", "source"});
  StudyRun out;
  out.name = std::move(name);
  const std::optional<std::string> own = run.text("config"), common = root.text("config");
  if (!own && !common) run.refuse("config", "is required, here or at the study's top");
  out.config = (folder / (own ? *own : *common)).lexically_normal().string();
  out.overrides = root.overrides();
  const std::vector<std::string> own_overrides = run.overrides();
  out.overrides.insert(out.overrides.end(), own_overrides.begin(), own_overrides.end());
  const auto own_seeds = run.seeds(), common_seeds = root.seeds();
  if (!own_seeds && !common_seeds) run.refuse("seeds", "is required, here or at the study's top");
  out.seeds = own_seeds ? *own_seeds : *common_seeds;
  out.published = run.number("published").value_or(kNoNumber);
  out.source = run.text("source").value_or("");
  out.reference = run.text("reference").value_or(root.text("reference").value_or(""));
  if (out.reference == out.name) out.reference.clear();
  if (std::isfinite(out.published) && out.source.empty()) {
    run.refuse("source", "is required with \"published\": who reports the number, and where");
  }
  return out;
}

// Throws UserError for a published figure that the run's metric cannot have. NaN: there is none.
void require_possible(double published, const Config& config) {
  const Metric& outcome = *task_of(config).compared().outcome;
  const bool is_percent = outcome.unit == Metric::Unit::share && published > 1;
  if (published < 0 || is_percent) {
    throw_user_error("published: {:g} is no {}{}", published, outcome.name,
                     is_percent ? "; write 0.9375 for 93.75 %" : "");
  }
}

}  // namespace

std::vector<std::string> StudyRun::overrides_for(uint64_t seed) const {
  std::vector<std::string> all = overrides;
  all.push_back(fmt::format("seed={}", seed));
  all.push_back("name=" + json_text(name));
  return all;
}

Study load_study(const std::string& path) {
  const Json json = parse_json(read_text_file(path, kMostStudyBytes), path);
  const StudyObject root(json, path, "");
  if (root.find("model") != nullptr && root.find("runs") == nullptr) {
    root.refuse("", "this is a config: dgc train trains it, and a study names it (docs/studies.md)");
  }
  root.allow({"name", "config", "set", "seeds", "reference", "runs"});
  Study study;
  study.name = root.text("name").value_or(fs::path(path).stem().string());
  const StudyObject runs = root.object("runs");
  for (const auto& [name, value] : runs.json().items()) {
    study.runs.push_back(read_study_run(runs.object(name.c_str()), root, name, fs::path(path).parent_path()));
  }
  if (study.runs.empty()) root.refuse("runs", "must name at least one run");
  for (const StudyRun& run : study.runs) {
    if (!run.reference.empty() && std::ranges::find(study.runs, run.reference, &StudyRun::name) == study.runs.end()) {
      const StudyObject own = runs.object(run.name.c_str());
      const StudyObject& names_it = own.text("reference") ? own : root;
      names_it.refuse("reference",
                      fmt::format("there is no run \"{}\", with which {} is to be compared", run.reference, run.name));
    }
    try {
      require_possible(run.published, load_config(run.config, run.overrides_for(run.seeds.back())));
    } catch (const UserError& error) {
      throw_user_error("{}: runs.{}: {}", path, run.name, error.what());
    }
  }
  return study;
}

}  // namespace dgc
