#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "run/metrics.h"

namespace dgc {

// Everything a report says about one run.
struct RunData {
  std::string name;  // the config's name, or the directory where several runs have one name
  Config config;
  std::string config_json;  // as saved with the run
  std::vector<StepMetrics> steps;
  std::vector<EvalMetrics> evals;
  std::optional<FinalMetrics> final;  // empty: the run is unfinished, and shown as far as it got
  TrafficMeans traffic;

  std::string epochs_text() const;  // "12.4 of 30"
  std::string full_name() const;    // the name, with a mark on an unfinished run
};

// Reads RUN/config.json and RUN/metrics.jsonl of each. Throws a UserError when one is not a run directory or has not
// finished a step yet.
std::vector<RunData> read_runs(const std::vector<std::filesystem::path>& runs);

// The runs beside one another, ready to print: a column each.
struct TableRow {
  std::string what;
  std::vector<std::string> cells;
};
std::vector<TableRow> results_table(const std::vector<RunData>& runs);

// A column for each run; a row for each key in which not all configs agree.
std::vector<TableRow> config_table(const std::vector<RunData>& runs);

// One sentence for each run that sends much less than the run with the same model and kind of data that sends most. The
// sentence says how much less, and at what cost.
std::vector<std::string> comparisons(const std::vector<RunData>& runs);

}  // namespace dgc
