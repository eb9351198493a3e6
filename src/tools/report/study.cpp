#include "tools/report/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "config/config.h"
#include "json/nearest.h"
#include "json/text.h"
#include "run/number_text.h"
#include "tasks/task.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostStudyBytes = size_t{1} << 24;  // size limit of a study file

// An object of the study, which says where it stands when something in it is wrong.
class StudyObject {
 public:
  StudyObject(const Json& json, std::string file, std::string path)
      : json_(json), file_(std::move(file)), path_(std::move(path)) {
    if (!json.is_object()) refuse("", fmt::format("must be an object, not {}", json_type_name(json)));
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& sentence) const {
    const std::string at = path_ + (path_.empty() || key.empty() ? "" : ".") + key;
    throw_user_error("{}: {}{}{}", file_, at, at.empty() ? "" : ": ", sentence);
  }
  void allow(const std::vector<std::string>& keys) const {
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      refuse(key, "there is no such key" + did_you_mean(key, keys));
    }
  }
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  StudyObject object(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) refuse(key, "is required");
    return {*value, file_, path_ + (path_.empty() ? "" : ".") + key};
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
      if (key == "seed" || key == "name") refuse("set." + key, "the study itself sets it");
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

double outcome_of(const RunData& run) { return run.newest()[*task_of(run.config).compared().outcome]; }

// The differences of runs with the same seed. "" where no seed is in both.
std::string difference_text(const RunGroup& group, const RunGroup& reference) {
  const Metric& metric = *task_of(group.config()).compared().outcome;
  if (task_of(reference.config()).compared().outcome != &metric) return "";
  const bool share = metric.unit == Metric::Unit::share;
  std::vector<double> differences;
  for (const RunData& run : group.runs) {
    const auto pair =
        std::ranges::find(reference.runs, run.config.seed, [](const RunData& r) { return r.config.seed; });
    if (pair == reference.runs.end()) continue;
    if (!run.final || !pair->final) continue;  // half a training is no result
    differences.push_back((share ? 100 : 1) * (outcome_of(run) - outcome_of(*pair)));
  }
  const Sample sample = sample_of(differences);
  if (sample.count == 0) return "";
  const char* unit = share ? " points" : "";
  const std::string pairs =
      sample.count == group.runs.size() ? "" : fmt::format(" ({} pair{})", sample.count, sample.count == 1 ? "" : "s");
  if (sample.count == 1) return fmt::format("{:+.2f}{}{}", sample.mean, unit, pairs);
  return fmt::format("{:+.2f} ± {:.2f}{}{}", sample.mean, confidence_95(sample), unit, pairs);
}

std::string seeds_text(const StudyRun& run, const RunGroup* group) {
  const auto finished = [](const RunData& one) { return one.final.has_value(); };
  const size_t done = group == nullptr ? 0 : static_cast<size_t>(std::ranges::count_if(group->runs, finished));
  return done == run.seeds.size() ? std::to_string(done) : fmt::format("{} of {}", done, run.seeds.size());
}

}  // namespace

std::vector<std::string> StudyRun::overrides_for(uint64_t seed) const {
  std::vector<std::string> all = overrides;
  all.push_back(fmt::format("seed={}", seed));
  all.push_back("name=" + json_text(name));
  return all;
}

std::string StudyTraining::name() const { return fmt::format("{} seed {}", run->name, seed); }

Study load_study(const std::string& path) {
  const Json json = parse_json(read_text_file(path, kMostStudyBytes), path);
  const StudyObject root(json, path, "");
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
      root.refuse("reference",
                  fmt::format("there is no run \"{}\", with which {} is to be compared", run.reference, run.name));
    }
    try {
      load_config(run.config, run.overrides_for(run.seeds.front()));
    } catch (const UserError& error) {
      throw_user_error("{}: runs.{}: {}", path, run.name, error.what());
    }
  }
  return study;
}

std::vector<StudyTraining> trainings_of(const Study& study, const fs::path& out) {
  std::vector<StudyTraining> all;
  for (const StudyRun& run : study.runs) {
    for (const uint64_t seed : run.seeds) {
      all.push_back(
          {&run, seed, out / run.name / fmt::format("seed{}", seed), load_config(run.config, run.overrides_for(seed))});
    }
  }
  return all;
}

std::vector<RunGroup> study_groups(const Study& study, const std::vector<StudyTraining>& trainings,
                                   std::vector<std::string>& notes) {
  std::vector<RunGroup> groups;
  for (const StudyRun& run : study.runs) {
    RunGroup group{run.name, {}};
    for (const StudyTraining& training : trainings) {
      if (training.run != &run || !has_steps(training.directory)) continue;
      try {
        group.runs.push_back(read_run(training.directory));
      } catch (const UserError& damaged) {
        notes.push_back(fmt::format("{} does not count: {}", training.name(), damaged.what()));
      }
    }
    if (!group.runs.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

StudyTable study_table(const Study& study, const std::vector<StudyTraining>& trainings,
                       const std::vector<RunGroup>& groups, const std::vector<std::string>& failures) {
  const auto group_of = [&](const std::string& name) {
    const auto found = std::ranges::find(groups, name, &RunGroup::name);
    return found == groups.end() ? nullptr : &*found;
  };
  std::vector<std::string> references;
  for (const StudyRun& run : study.runs) {
    if (!run.reference.empty() && std::ranges::find(references, run.reference) == references.end()) {
      references.push_back(run.reference);
    }
  }
  std::vector<const Metric*> outcomes;
  for (const RunGroup& group : groups) {
    const Metric* metric = task_of(group.config()).compared().outcome;
    if (std::ranges::find(outcomes, metric) == outcomes.end()) outcomes.push_back(metric);
  }
  StudyTable table;
  table.columns = {"seeds", outcomes.size() == 1 ? outcomes[0]->name : "outcome"};
  if (!references.empty()) table.columns.push_back(references.size() == 1 ? "against " + references[0] : "against");
  table.columns.insert(table.columns.end(), {"sent per worker and step", "ratio"});
  const bool literature = std::ranges::any_of(study.runs, [](const StudyRun& run) { return !run.source.empty(); });
  if (literature) table.columns.emplace_back("published");

  for (const StudyRun& run : study.runs) {
    const RunGroup* const group = group_of(run.name);
    TableRow row{run.name, {seeds_text(run, group)}};
    const auto any = std::ranges::find(trainings, &run, &StudyTraining::run);
    const Metric* const metric = task_of(any->config).compared().outcome;
    const auto number = [&](double value) { return metric->text(value); };
    // A training that is still under way is no result.
    const auto outcome = [](const RunData& one) { return one.final ? outcome_of(one) : kNoNumber; };
    row.cells.push_back(group == nullptr ? "" : group->text(outcome, number));
    if (!references.empty()) {
      const RunGroup* const reference = run.reference.empty() ? nullptr : group_of(run.reference);
      std::string difference = group == nullptr || reference == nullptr ? "" : difference_text(*group, *reference);
      if (references.size() > 1 && !difference.empty()) difference = fmt::format("{}: {}", run.reference, difference);
      row.cells.push_back(std::move(difference));
    }
    row.cells.push_back(group == nullptr ? "" : bytes_text(group->sent()));
    const auto ratio = [](const RunData& one) { return one.traffic.ratio_after_warmup; };
    row.cells.push_back(group == nullptr ? "" : ratio_text(group->sample(ratio).mean));
    if (literature) {
      row.cells.push_back(std::isfinite(run.published) ? fmt::format("{} ({})", metric->text(run.published), run.source)
                                                       : run.source);
    }
    for (std::string& cell : row.cells) {
      if (cell.empty()) cell = "–";
    }
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back("Mean ± standard deviation over the seeds that are finished. What is sent: after warm-up.");
  if (!references.empty()) {
    table.notes.emplace_back(
        "Against another run: the mean difference of trainings with the same seed, ± half the width of its 95 % "
        "confidence interval (Student's t).");
  }
  table.notes.insert(table.notes.end(), failures.begin(), failures.end());
  return table;
}

}  // namespace dgc
