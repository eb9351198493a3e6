#include "tools/report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "run/file_io.h"
#include "run/number_text.h"
#include "run/run_directory.h"
#include "tasks/task.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "tools/median.h"

namespace dgc {
namespace {

double median_rate(const RunData& run) {
  std::vector<double> rates;
  for (const StepMetrics& step : run.steps) {
    if (std::isfinite(step.samples_per_s)) rates.push_back(step.samples_per_s);
  }
  return rates.empty() ? kNoNumber : median(rates);
}

// Traffic and results of two experiments can only be compared for one model, one kind of data and as many workers.
bool comparable(const RunGroup& a, const RunGroup& b) {
  return a.config().model == b.config().model && a.config().data.type == b.config().data.type &&
         a.config().workers() == b.config().workers();
}

// Whether both are measured by the same data, as far as their configs tell: the data may have been moved.
bool tested_alike(const RunGroup& a, const RunGroup& b) {
  const auto measured_by = [](DataOptions data) {
    data.path.clear();
    data.threads = 1;
    data.train_limit.reset();
    data.images.augment = {};
    data.images.synthetic.train_samples = 0;
    data.text.train.clear();
    data.text.valid.clear();
    data.text.test.clear();
    data.speech.train.clear();
    data.speech.augment = {};
    data.speech.buckets = {};
    return data;
  };
  return measured_by(a.config().data) == measured_by(b.config().data);
}

// The experiment that sends most of those comparable with `like`, which may be `like` itself.
const RunGroup& most_sending(const std::vector<RunGroup>& groups, const RunGroup& like) {
  const RunGroup* most = &like;
  for (const RunGroup& group : groups) {
    if (comparable(group, like) && group.sent() > most->sent()) most = &group;
  }
  return *most;
}

// What runs that differ in their seed alone have in common.
std::string experiment_of(Config config) {
  config.seed = 0;
  config.name.clear();
  config.output.clear();
  return resolved_json(config);
}

void require_run(const std::filesystem::path& directory) {
  for (const char* name : {kConfigFile, kMetricsFile}) require_file_of_run(directory, name);
  require_no_pipes(directory);
}

}  // namespace

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

JsonLineReader open_rows(const std::filesystem::path& directory) {
  require_run(directory);
  return JsonLineReader((directory / kMetricsFile).string());
}

RunData read_run(const std::filesystem::path& directory) {
  require_run(directory);
  const auto config_path = directory / kConfigFile, metrics_path = directory / kMetricsFile;
  RunData run;
  run.directory = directory;
  run.config = load_run_config(config_path.string());
  run.config_json = read_file(config_path, kMostConfigBytes);

  TrafficCounter traffic;
  JsonLineReader lines(metrics_path.string());
  while (const std::optional<Row> row = lines.next()) {
    const auto kind = row->text("kind");
    if (kind == "step") {
      run.steps.push_back(step_from_row(*row, lines.place()));
      traffic.add(run.steps.back());
    } else if (kind == "eval") {
      run.evals.push_back(eval_from_row(*row, lines.place()));
    } else if (kind == "final") {
      run.final = final_from_row(*row, lines.place());
    }
  }
  if (run.steps.empty() && !run.final) {
    throw_user_error("{}: no step is finished yet; train some more first.", metrics_path.string());
  }
  const Metric& outcome = *task_of(run.config).compared().outcome;
  const bool has_no_outcome = run.final && run.newest().has(outcome) && !std::isfinite(outcome_of(run));
  run.diverged = has_no_outcome || has_diverged(directory);
  run.traffic = traffic.means();
  const OptimizerOptions& optimizer = run.config.optimizer;
  if (compresses(optimizer.type) && run.last_epoch() <= optimizer.sparsity.warmup.epochs) {
    run.traffic.sent_bytes_after_warmup = run.traffic.ratio_after_warmup = kNoNumber;  // the warm-up is not over yet
  }
  return run;
}

const Measures& RunData::newest() const {
  static const Measures none;
  if (final) return final->eval.measures;
  return evals.empty() ? none : evals.back().measures;
}

int64_t RunData::last_step() const { return steps.empty() ? final->eval.step : steps.back().step; }

double RunData::last_epoch() const { return steps.empty() ? final->eval.epoch : steps.back().epoch; }

// Rounded to a tenth, but a run that has not made all of its epochs is not shown as if it had.
std::string RunData::epochs_text() const {
  const auto all = static_cast<double>(config.training.epochs);
  const double rounded = std::round(last_epoch() * 10) / 10;
  const double shown = last_epoch() < all ? std::min(rounded, all - 0.1) : rounded;
  return fmt::format("{:.7g} of {}", shown, config.training.epochs);
}

size_t RunGroup::done() const { return static_cast<size_t>(std::ranges::count_if(runs, &RunData::is_result)); }

std::string RunGroup::full_name() const {
  if (finished()) return name;
  if (runs.size() == 1) return name + (runs.front().diverged ? " (diverged)" : " (unfinished)");
  const auto diverged = std::ranges::count_if(runs, &RunData::diverged);
  return fmt::format("{} ({} of {} finished{})", name, done(), runs.size(),
                     diverged == 0 ? "" : fmt::format(", {} diverged", diverged));
}

std::string RunGroup::epochs_text() const {
  return std::ranges::min_element(runs, {}, &RunData::last_epoch)->epochs_text();
}

Sample RunGroup::sample(const std::function<double(const RunData&)>& value) const {
  std::vector<double> values;
  for (const RunData& run : runs) {
    if (counts(run)) values.push_back(value(run));
  }
  return sample_of(values);
}

std::string RunGroup::text(const std::function<double(const RunData&)>& value,
                           const std::function<std::string(double)>& number) const {
  const Sample all = sample(value);
  const auto counted =
      static_cast<size_t>(std::ranges::count_if(runs, [&](const RunData& run) { return counts(run); }));
  std::string text = number(all.mean);
  if (all.count > 1) text += " ± " + number(all.deviation);
  if (all.count > 0 && all.count < counted) text += fmt::format(" ({} of {})", all.count, counted);
  return text;
}

double RunGroup::sent() const {
  return sample([](const RunData& run) { return run.traffic.sent_bytes_after_warmup; }).mean;
}

std::vector<RunGroup> read_groups(const std::vector<std::filesystem::path>& runs) {
  if (runs.empty()) throw_user_error("No run to report on: give at least one directory that `dgc train` wrote.");
  std::vector<RunData> read;
  for (const auto& path : runs) read.push_back(read_run(path));
  return group_runs(std::move(read));
}

std::vector<RunGroup> group_runs(std::vector<RunData> runs) {
  std::vector<RunGroup> groups;
  std::vector<std::string> experiments;  // of the groups
  for (RunData& run : runs) {
    const std::string experiment = experiment_of(run.config);
    const auto has_seed = [&](const RunData& other) { return other.config.seed == run.config.seed; };
    size_t g = 0;
    while (g < groups.size() && (experiments[g] != experiment || std::ranges::any_of(groups[g].runs, has_seed))) ++g;
    if (g == groups.size()) {
      groups.push_back({run.config.name, {}});
      experiments.push_back(experiment);
    }
    groups[g].runs.push_back(std::move(run));
  }
  std::vector<std::string> names;
  for (const RunGroup& group : groups) names.push_back(group.name);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (std::ranges::count(names, names[i]) > 1) groups[i].name = groups[i].runs.front().directory.string();
  }
  return groups;
}

double outcome_of(const RunData& run) { return run.newest()[*task_of(run.config).compared().outcome]; }

std::string difference_text(const RunGroup& group, const RunGroup& reference) {
  const Metric& metric = *task_of(group.config()).compared().outcome;
  if (task_of(reference.config()).compared().outcome != &metric) return "";
  const bool share = metric.unit == Metric::Unit::share;
  std::vector<double> differences;
  for (const RunData& run : group.runs) {
    const auto pair =
        std::ranges::find(reference.runs, run.config.seed, [](const RunData& r) { return r.config.seed; });
    if (pair == reference.runs.end()) continue;
    if (!run.is_result() || !pair->is_result()) continue;
    differences.push_back((share ? 100 : 1) * (outcome_of(run) - outcome_of(*pair)));
  }
  const Sample sample = sample_of(differences);
  if (sample.count == 0) return "";
  const char* unit = share ? " points" : "";
  const std::string pairs = sample.count == group.runs.size()
                                ? ""
                                : fmt::format(" ({})", counted(static_cast<int64_t>(sample.count), "pair"));
  if (sample.count == 1) return fmt::format("{:+.2f}{}{}", sample.mean, unit, pairs);
  return fmt::format("{:+.2f} ± {:.2f}{}{}", sample.mean, confidence_95(sample), unit, pairs);
}

std::vector<TableRow> results_table(const std::vector<RunGroup>& groups) {
  std::vector<TableRow> table;
  auto add = [&](const std::string& what, auto text) {
    TableRow row{what, {}};
    for (const RunGroup& group : groups) row.cells.push_back(text(group));
    table.push_back(std::move(row));
  };
  // A row of means, and of deviations where a column has several runs.
  auto add_number = [&](const std::string& what, auto value, auto number) {
    add(what, [&](const RunGroup& group) { return group.text(value, number); });
  };
  // What does not depend on the seed, or is no result: means alone.
  auto add_mean = [&](const std::string& what, auto value, auto number) {
    add(what, [&](const RunGroup& group) { return std::string(number(group.sample(value).mean)); });
  };
  using Run = const RunData&;
  if (std::ranges::any_of(groups, [](const RunGroup& group) { return group.runs.size() > 1; })) {
    add("seeds", [](const RunGroup& group) {
      std::vector<uint64_t> seeds, unfinished, diverged;
      for (Run run : group.runs) {
        (group.counts(run) ? seeds : run.diverged ? diverged : unfinished).push_back(run.config.seed);
      }
      std::string text = fmt::format("{}", fmt::join(seeds, ", "));
      if (!unfinished.empty()) text += fmt::format(" (unfinished: {})", fmt::join(unfinished, ", "));
      if (!diverged.empty()) text += fmt::format(" (diverged: {})", fmt::join(diverged, ", "));
      return text;
    });
  }
  for (const Metric* metric : all_metrics()) {
    const auto compares = [&](const Config& config) {
      const std::vector<const Metric*> compared = task_of(config).compared().table;
      return std::ranges::find(compared, metric) != compared.end();
    };
    if (std::ranges::none_of(groups, compares, &RunGroup::config)) continue;
    add_number(
        metric->name, [&](Run run) { return compares(run.config) ? run.newest()[*metric] : kNoNumber; },
        [&](double value) { return metric->text(value); });
  }
  add_number(
      kTestLoss.name, [](Run run) { return run.newest()[kTestLoss]; },
      [](double loss) { return kTestLoss.text(loss); });
  add_mean(
      "sent per worker and step *", [](Run run) { return run.traffic.sent_bytes_after_warmup; }, bytes_text);
  add_mean(
      "compression ratio *", [](Run run) { return run.traffic.ratio_after_warmup; }, ratio_text);
  add_mean(
      "compression ratio, whole run", [](Run run) { return run.traffic.ratio; }, ratio_text);
  const char* samples = task_of(groups[0].config()).samples();
  const bool alike =
      std::ranges::all_of(groups, [&](const RunGroup& group) { return task_of(group.config()).samples() == samples; });
  add_mean(
      fmt::format("{}/s", alike ? samples : "samples"),
      [](Run run) {
        // Where a run was resumed at its end, the last process has made no step.
        const double rate = run.final ? run.final->samples_per_s : kNoNumber;
        return std::isfinite(rate) ? rate : median_rate(run);
      },
      rate_text);
  add_mean(
      "wall time", [](Run run) { return run.final ? run.final->wall_seconds : kNoNumber; }, duration_text);
  const auto exchange_ms = [](Run run) { return run.final ? run.final->exchange_ms : kNoNumber; };
  const auto overlaps = [&](const RunGroup& group) { return group.sample(exchange_ms).count > 0; };
  if (std::ranges::any_of(groups, overlaps)) {
    add_mean("compression and exchange", exchange_ms,
             [](double ms) { return std::isfinite(ms) ? fmt::format("{:.3g} ms a step", ms) : std::string("–"); });
    add_mean(
        "of it behind the backward pass", [](Run run) { return run.final ? run.final->hidden_share : kNoNumber; },
        percent_text);
  }
  add("epochs", [](const RunGroup& group) { return group.epochs_text(); });
  add_mean(
      "steps", [](Run run) { return static_cast<double>(run.last_step()); }, count_text);
  add_mean(
      "skipped steps",
      [](Run run) {
        if (run.steps.empty()) return kNoNumber;
        int64_t skipped = 0;
        for (const StepMetrics& step : run.steps) skipped += step.skipped ? step.local_steps : 0;
        return static_cast<double>(skipped);
      },
      [](double steps) { return steps > std::floor(steps) ? fmt::format("{:.1f}", steps) : count_text(steps); });
  add("weights xxh64", [](const RunGroup& group) {
    const auto& final = group.runs.front().final;
    return final && group.runs.size() == 1 ? final->weights_xxh64 : std::string("–");
  });
  return table;
}

std::vector<std::string> results_notes(const std::vector<RunGroup>& groups) {
  std::vector<std::string> notes = {
      "* mean over the steps after warm-up, at the run's full sparsity",
      "sent: what a worker brings to the exchange, counted once, however many others it is carried to",
      "worker: a replica with its own share of the data; skipped step: a gradient was not finite, and no worker moved",
      "weights xxh64: a checksum of the final parameters, equal for runs that ended in the same bits"};
  if (std::ranges::any_of(groups, [](const RunGroup& group) { return group.runs.size() > 1; })) {
    notes.emplace_back(
        "± after a mean: the standard deviation over its seeds; after a difference between runs with the same seed: "
        "half the width of its 95 % confidence interval");
  }
  if (std::ranges::any_of(groups, [](const RunGroup& group) { return group.done() > 0 && !group.finished(); })) {
    notes.emplace_back(
        "where some seeds are finished and others are not, or have diverged, all numbers are those of the finished "
        "ones; epochs: of the seed that is least far");
  }
  return notes;
}

std::vector<TableRow> config_table(const std::vector<RunGroup>& groups) {
  std::vector<TableRow> table;
  for (size_t i = 1; i < groups.size(); ++i) {
    for (const ConfigDifference& difference : config_differences(groups[0].config(), groups[i].config())) {
      // A group's runs have several, which are among the results.
      if (difference.path == "seed" &&
          !std::ranges::all_of(groups, [](const RunGroup& group) { return group.runs.size() == 1; }))
        continue;
      auto row = std::find_if(table.begin(), table.end(), [&](const TableRow& r) { return r.what == difference.path; });
      if (row == table.end()) {
        // Experiments that do not appear in a difference agree with the first.
        row = table.insert(row, {difference.path, std::vector<std::string>(groups.size(), difference.a)});
      }
      row->cells[i] = difference.b;
    }
  }
  return table;
}

std::vector<std::string> comparisons(const std::vector<RunGroup>& groups) {
  constexpr double kMuchLess = 1.5;
  std::vector<std::string> out;
  for (const RunGroup& group : groups) {
    const RunGroup& most = most_sending(groups, group);
    const double times = most.sent() / group.sent();
    if (!(times >= kMuchLess && std::isfinite(times))) continue;  // NaN: no step yet
    auto sentence =
        fmt::format("{} sends {:.{}f} times fewer bytes than {}: {} against {} per worker and step, after warm-up.",
                    group.full_name(), times, times < 10 ? 1 : 0, most.full_name(), bytes_text(group.sent()),
                    bytes_text(most.sent()));
    const Metric& metric = *task_of(group.config()).compared().outcome;
    const double reached = group.sample(outcome_of).mean, other = most.sample(outcome_of).mean;
    if (std::isfinite(reached) && std::isfinite(other) && tested_alike(group, most)) {
      const std::string difference = difference_text(group, most);
      sentence +=
          fmt::format(" {}: {} against {}{}.", capitalized(metric.name), metric.text(reached), metric.text(other),
                      difference.empty() ? "" : ", with the same seeds a difference of " + difference);
    }
    out.push_back(std::move(sentence));
  }
  return out;
}

}  // namespace dgc
