#include "tools/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "config/config.h"
#include "run/number_text.h"
#include "tasks/task.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

RunData read_run(const std::filesystem::path& directory) {
  const auto config_path = directory / "config.json", metrics_path = directory / "metrics.jsonl";
  if (!std::filesystem::exists(config_path) || !std::filesystem::exists(metrics_path)) {
    throw_user_error("{}: not a run directory (it has no {}); give the directory that `dgc train` wrote.",
                     directory.string(), std::filesystem::exists(config_path) ? "metrics.jsonl" : "config.json");
  }
  RunData run;
  run.config = load_run_config(config_path.string());
  run.name = run.config.name;
  std::ifstream file(config_path, std::ios::binary);
  run.config_json.assign(std::istreambuf_iterator<char>(file), {});

  TrafficCounter traffic;
  for (const Row& row : read_json_lines(metrics_path.string())) {
    const auto kind = row.text("kind");
    if (kind == "step") {
      run.steps.push_back(step_from_row(row, metrics_path.string()));
      traffic.add(run.steps.back());
    } else if (kind == "eval") {
      run.evals.push_back(eval_from_row(row, metrics_path.string()));
    } else if (kind == "final") {
      run.final = final_from_row(row, metrics_path.string());
    }
  }
  if (run.steps.empty()) {
    throw_user_error("{}: no step is finished yet; train some more first.", metrics_path.string());
  }
  run.traffic = traffic.means();
  const OptimizerOptions& optimizer = run.config.optimizer;
  if (optimizer.type == OptimizerType::dgc && run.steps.back().epoch <= optimizer.sparsity.warmup.epochs) {
    run.traffic.sent_bytes_after_warmup = run.traffic.ratio_after_warmup = kNoNumber;  // the warm-up is not over yet
  }
  return run;
}

double median_rate(const RunData& run) {
  std::vector<double> rates;
  for (const StepMetrics& step : run.steps) {
    if (std::isfinite(step.samples_per_s)) rates.push_back(step.samples_per_s);
  }
  if (rates.empty()) return kNoNumber;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

// The measures of the final row where there is one, else of the newest evaluation.
const Measures& newest(const RunData& run) {
  static const Measures none;
  if (run.final) return run.final->eval.measures;
  return run.evals.empty() ? none : run.evals.back().measures;
}

// Traffic and results of two runs can only be compared for one model and one kind of data.
bool comparable(const RunData& a, const RunData& b) {
  return a.config.model == b.config.model && a.config.data.type == b.config.data.type;
}

double sent(const RunData& run) { return run.traffic.sent_bytes_after_warmup; }

// The run that sends most of those comparable with `like`, which may be `like` itself.
const RunData& most_sending(const std::vector<RunData>& runs, const RunData& like) {
  const RunData* most = &like;
  for (const RunData& run : runs) {
    if (comparable(run, like) && sent(run) > sent(*most)) most = &run;
  }
  return *most;
}

}  // namespace

std::string RunData::epochs_text() const {
  return fmt::format("{:.4g} of {}", std::floor(steps.back().epoch * 10) / 10, config.training.epochs);
}

std::string RunData::full_name() const { return final ? name : name + " (unfinished)"; }

std::vector<RunData> read_runs(const std::vector<std::filesystem::path>& runs) {
  if (runs.empty()) throw_user_error("No run to report on: give at least one directory that `dgc train` wrote.");
  std::vector<RunData> out;
  for (const auto& run : runs) out.push_back(read_run(run));
  std::vector<std::string> names;
  for (const RunData& run : out) names.push_back(run.name);
  for (size_t i = 0; i < out.size(); ++i) {
    if (std::count(names.begin(), names.end(), names[i]) > 1) out[i].name = runs[i].string();
  }
  return out;
}

std::vector<TableRow> results_table(const std::vector<RunData>& runs) {
  std::vector<TableRow> table;
  auto add = [&](const char* what, auto text) {
    TableRow row{what, {}};
    for (const RunData& run : runs) row.cells.push_back(text(run));
    table.push_back(std::move(row));
  };
  using Run = const RunData&;
  for (const Metric* metric : all_metrics()) {
    const auto compares = [&](Run run) {
      const std::vector<const Metric*> compared = task_of(run.config).compared().table;
      return std::ranges::find(compared, metric) != compared.end();
    };
    if (std::ranges::none_of(runs, compares)) continue;
    add(metric->name, [&](Run run) { return metric->text(compares(run) ? newest(run)[*metric] : kNoNumber); });
  }
  add(kTestLoss.name, [](Run run) { return kTestLoss.text(newest(run)[kTestLoss]); });
  add("sent per worker and step *", [](Run run) { return bytes_text(run.traffic.sent_bytes_after_warmup); });
  add("compression ratio *", [](Run run) { return ratio_text(run.traffic.ratio_after_warmup); });
  add("compression ratio, whole run", [](Run run) { return ratio_text(run.traffic.ratio); });
  const char* samples = task_of(runs[0].config).samples();
  const bool alike = std::ranges::all_of(runs, [&](Run run) { return task_of(run.config).samples() == samples; });
  add(fmt::format("{}/s", alike ? samples : "samples").c_str(),
      [](Run run) { return rate_text(run.final ? run.final->samples_per_s : median_rate(run)); });
  add("wall time", [](Run run) { return duration_text(run.final ? run.final->wall_seconds : kNoNumber); });
  const auto overlaps = [](Run run) { return run.final && std::isfinite(run.final->exchange_ms); };
  if (std::ranges::any_of(runs, overlaps)) {
    add("compression and exchange", [&](Run run) {
      return overlaps(run) ? fmt::format("{:.3g} ms a step", run.final->exchange_ms) : std::string("–");
    });
    add("of it behind the backward pass",
        [&](Run run) { return percent_text(overlaps(run) ? run.final->hidden_share : kNoNumber); });
  }
  add("epochs", [](Run run) { return run.epochs_text(); });
  add("steps", [](Run run) { return count_text(static_cast<double>(run.steps.back().step)); });
  add("skipped steps", [](Run run) {
    const auto skipped = [](const StepMetrics& step) { return step.skipped; };
    return count_text(static_cast<double>(std::count_if(run.steps.begin(), run.steps.end(), skipped)));
  });
  add("weights xxh64", [](Run run) { return run.final ? run.final->weights_xxh64 : std::string("–"); });
  return table;
}

std::vector<TableRow> config_table(const std::vector<RunData>& runs) {
  std::vector<TableRow> table;
  for (size_t i = 1; i < runs.size(); ++i) {
    for (const ConfigDifference& difference : config_differences(runs[0].config, runs[i].config)) {
      auto row = std::find_if(table.begin(), table.end(), [&](const TableRow& r) { return r.what == difference.path; });
      if (row == table.end()) {
        // Runs that do not appear in a difference agree with the first.
        row = table.insert(row, {difference.path, std::vector<std::string>(runs.size(), difference.a)});
      }
      row->cells[i] = difference.b;
    }
  }
  return table;
}

std::vector<std::string> comparisons(const std::vector<RunData>& runs) {
  constexpr double kMuchLess = 1.5;
  std::vector<std::string> out;
  for (const RunData& run : runs) {
    const RunData& most = most_sending(runs, run);
    const double times = sent(most) / sent(run);
    if (!(times >= kMuchLess && std::isfinite(times))) continue;  // one worker alone sends nothing
    auto sentence = fmt::format(
        "{} sends {:.{}f} times fewer bytes than {}: {} against {} per worker and step, after warm-up.",
        run.full_name(), times, times < 10 ? 1 : 0, most.full_name(), bytes_text(sent(run)), bytes_text(sent(most)));
    const Metric& metric = *task_of(run.config).compared().outcome;
    const double reached = newest(run)[metric], other = newest(most)[metric];
    if (std::isfinite(reached) && std::isfinite(other)) {
      const bool share = metric.unit == Metric::Unit::share;
      sentence += fmt::format(" {}: {} against {} ({:+.2f} {}).", capitalized(metric.name), metric.text(reached),
                              metric.text(other), 100 * (share ? reached - other : reached / other - 1),
                              share ? "points" : "%");
    }
    out.push_back(std::move(sentence));
  }
  return out;
}

}  // namespace dgc
