#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "run/metrics.h"
#include "tools/report/statistics.h"

namespace dgc {

// Everything a report says about one run.
struct RunData {
  std::filesystem::path directory;
  Config config;
  std::string config_json;         // as saved with the run
  std::vector<StepMetrics> steps;  // none where their file was lost and the run ended afterwards
  std::vector<EvalMetrics> evals;
  std::optional<FinalMetrics> final;  // empty: the run is unfinished, and shown as far as it got
  bool diverged = false;              // it has ended, and its numbers are not finite
  TrafficMeans traffic;

  bool has_ended() const { return final || diverged; }
  bool is_result() const { return final && !diverged; }
  const Measures& newest() const;  // of the final row where there is one, else of the newest evaluation
  // What the run has come to, by its last step; by its final row where the file of its steps was lost.
  int64_t last_step() const;
  double last_epoch() const;
  std::string epochs_text() const;  // "12.4 of 30"
};

// For the rows of RUN/metrics.jsonl. Throws a UserError when `run` is not a run directory.
JsonLineReader open_rows(const std::filesystem::path& run);

// Reads RUN/config.json and RUN/metrics.jsonl. Throws a UserError when `run` is not a run directory or has not finished
// a step yet. So there are steps or a final row.
RunData read_run(const std::filesystem::path& run);

// Runs whose configs agree in everything but the seed: one experiment, and a column of a table or a curve of a figure.
// There is at least one run.
struct RunGroup {
  std::string name;  // the config's name, or a directory where several experiments have one name
  std::vector<RunData> runs;

  const Config& config() const { return runs.front().config; }
  size_t done() const;  // how many runs are results
  bool finished() const { return done() == runs.size(); }
  bool has_ended() const { return std::ranges::all_of(runs, &RunData::has_ended); }
  // Numbers are those of the results alone, as soon as there is one: half a training is none, nor is one that has
  // diverged.
  bool counts(const RunData& run) const { return run.is_result() || done() == 0; }
  std::string full_name() const;    // the name, with a mark where runs are unfinished or have diverged
  std::string epochs_text() const;  // of the run that is least far
  Sample sample(const std::function<double(const RunData&)>& value) const;
  // The mean, and the deviation where there are several runs: "90.12 % ± 0.08 %". Where some of them have no such
  // number, it says how many have: "90.12 % (1 of 2)".
  std::string text(const std::function<double(const RunData&)>& value,
                   const std::function<std::string(double)>& number) const;
  double sent() const;  // bytes per worker and step after warm-up, the runs' mean
};

// Takes those runs together that differ in the seed alone. read_groups() reads them, and throws as read_run() does.
std::vector<RunGroup> group_runs(std::vector<RunData> runs);
std::vector<RunGroup> read_groups(const std::vector<std::filesystem::path>& runs);

// The run's newest value of the metric by which people compare runs of its kind of data (Task::compared().outcome); NaN
// before the first evaluation.
double outcome_of(const RunData& run);
// The mean difference of the outcomes of results with the same seed, with half the width of its 95 % confidence
// interval where there are several: "+1.20 ± 0.31 points", with the number of pairs where it is not the group's of
// runs. "" where no seed is finished in both, or where they are not compared by the same metric.
std::string difference_text(const RunGroup& group, const RunGroup& reference);

struct TableRow {
  std::string what;
  std::vector<std::string> cells;
};

// A table of named columns, a row for each run, which `what` names, and sentences below it.
struct SummaryTable {
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
  std::vector<std::string> notes;
};

// The experiments beside one another, ready to print: a column each.
std::vector<TableRow> results_table(const std::vector<RunGroup>& groups);
// The table's footnotes, a sentence or two each: what * and ± mark, which runs count, and words that not everybody
// knows.
std::vector<std::string> results_notes(const std::vector<RunGroup>& groups);

// A column for each experiment; a row for each key in which not all configs agree.
std::vector<TableRow> config_table(const std::vector<RunGroup>& groups);

std::string capitalized(std::string text);  // only changes the first letter

// One sentence for each experiment that sends much less than that with the same model, kind of data and number of
// workers that sends most. The sentence says how much less, and at what cost.
std::vector<std::string> comparisons(const std::vector<RunGroup>& groups);

}  // namespace dgc
