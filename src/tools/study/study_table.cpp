#include "tools/study/study_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "run/metrics.h"
#include "run/number_text.h"
#include "tasks/task.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

std::string seeds_text(const StudyRun& run, const RunGroup* group) {
  const size_t done = group == nullptr ? 0 : group->done();
  return done == run.seeds.size() ? std::to_string(done) : fmt::format("{} of {}", done, run.seeds.size());
}

}  // namespace

std::vector<RunGroup> study_groups(const Study& study, const std::vector<StudyTraining>& trainings,
                                   std::vector<TrainingNote>& notes) {
  const auto leave_out = [&](const StudyTraining& training, const std::string& why) {
    if (std::ranges::count(notes, training.name(), &TrainingNote::training) > 0) return;  // it has failed
    notes.push_back({training.name(), fmt::format("{} does not count: {}", training.name(), why)});
  };
  std::vector<RunGroup> groups;
  for (const StudyRun& run : study.runs) {
    RunGroup group{run.name, {}};
    for (const StudyTraining& training : trainings) {
      if (training.run != &run) continue;
      const Standing standing = standing_of(training);
      if (standing.state == Standing::State::refused) {
        leave_out(training, standing.why);
        continue;
      }
      if (!has_steps(training.directory)) continue;
      try {
        RunData data = read_run(training.directory);
        if (standing.state != Standing::State::done) {
          if (data.steps.empty()) continue;  // its final row tells of an end that the study does not ask for
          data.final.reset();
        } else if (data.diverged) {
          leave_out(training, fmt::format("its {} is not finite", task_of(data.config).compared().outcome->name));
          continue;
        }
        group.runs.push_back(std::move(data));
      } catch (const UserError& damaged) {
        leave_out(training, damaged.what());
      }
    }
    if (!group.runs.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

SummaryTable study_table(const Study& study, const std::vector<StudyTraining>& trainings,
                         const std::vector<RunGroup>& groups, const std::vector<TrainingNote>& notes) {
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
  SummaryTable table;
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
    const auto outcome = [](const RunData& one) { return one.is_result() ? outcome_of(one) : kNoNumber; };
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
  table.notes.emplace_back(
      "Mean ± standard deviation over the seeds that are finished. Sent, after warm-up: what a worker brings to the "
      "exchange, counted once, however many others it is carried to.");
  if (!references.empty()) {
    table.notes.emplace_back(
        "Against another run: the mean difference of trainings with the same seed, ± half the width of its 95 % "
        "confidence interval (Student's t).");
  }
  for (const TrainingNote& note : notes) table.notes.push_back(note.text);
  return table;
}

}  // namespace dgc
