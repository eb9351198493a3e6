#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <regex>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/supervise.h"
#include "run/log.h"
#include "run/number_text.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/bench/bench.h"
#include "tools/report/report.h"
#include "tools/study/study_runner.h"
#include "tools/study/study_table.h"
#include "train/ranks/interrupt.h"
#include "train/trainer.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

struct StudyArguments {
  std::string study, only;
  fs::path out;
  int jobs = 1;
  bool dry_run = false, quiet = false;
};

std::vector<StudyTraining> missing_of(const std::vector<StudyTraining>& trainings, const std::string& only) {
  std::regex wanted;
  try {
    wanted = std::regex(only);
  } catch (const std::regex_error&) {
    throw_user_error("--only {}: this is no regular expression", only);
  }
  std::vector<StudyTraining> missing;
  bool any = false;
  for (const StudyTraining& training : trainings) {
    if (!std::regex_search(training.name(), wanted)) continue;
    any = true;
    if (!other_experiment(training).empty() || !is_done(training)) missing.push_back(training);
  }
  if (!any) {
    throw_user_error("--only {}: no training of the study has such a name; the first is {}", only,
                     trainings.front().name());
  }
  return missing;
}

// Measures a step of each run that is missing; trainings of one run take equally long.
void print_plan(const Study& study, const std::vector<StudyTraining>& trainings,
                const std::vector<StudyTraining>& missing) {
  constexpr BenchOptions kShort{.warmup = 1, .steps = 2, .repeats = 1};
  double total = 0;
  for (const StudyRun& run : study.runs) {
    const auto of_run = [&](const StudyTraining& training) { return training.run == &run; };
    const auto count = std::ranges::count_if(missing, of_run);
    const Config& config = std::ranges::find_if(trainings, of_run)->config;
    fmt::print("{}: {} epochs, {} of {} seeds to train", run.name, config.training.epochs, count, run.seeds.size());
    if (count > 0) {
      const TrainBench bench = bench_train(config, kShort);
      double steps = 0;
      for (const StudyTraining& training : missing) {
        if (!of_run(training) || !other_experiment(training).empty()) continue;
        const auto epoch_steps = static_cast<double>(bench.steps_per_epoch);
        steps += epochs_left(training, epoch_steps) * epoch_steps;
      }
      const double seconds = steps * bench.ms_per_step / 1000;
      fmt::print(", {} steps of {:.1f} ms: {}", count_text(steps), bench.ms_per_step, duration_text(seconds));
      total += seconds;
    }
    fmt::print("\n");
  }
  for (const StudyTraining& training : missing) {
    const std::string other = other_experiment(training);
    if (!other.empty()) fmt::print("{} will fail: {}\n", training.name(), printable(other));
  }
  fmt::print("in all, one after another and without evaluations: {}\n", duration_text(total));
}

void run_study(const StudyArguments& options) {
  const Study study = load_study(options.study);
  const fs::path out = options.out.empty() ? fs::path("runs") / fs::path(options.study).stem() : options.out;
  const std::vector<StudyTraining> trainings = trainings_of(study, out);
  const std::vector<StudyTraining> missing = missing_of(trainings, options.only);
  if (options.dry_run) return print_plan(study, trainings, missing);
  StudyRunner runner(missing, options.jobs);
  std::vector<std::string> notes = runner.run();
  const std::vector<RunGroup> groups = study_groups(study, sound_ones(trainings, notes), notes);
  const SummaryTable table = study_table(study, trainings, groups, notes);
  fmt::print("{}", summary_text(table));  // before the report is written, as the disk may be full
  std::fflush(stdout);
  fs::create_directories(out);
  write_summary_report(study.name, table, groups, out / kStudyReport);
  fmt::print("report: {}\n", printable((out / kStudyReport).string()));
  if (runner.exit_code() != 0) throw SupervisedEnd{runner.exit_code()};
}

}  // namespace

void add_study_command(CLI::App& app) {
  auto options = std::make_shared<StudyArguments>();
  CLI::App* command = app.add_subcommand("study", "Train runs with several seeds each, and compare them");
  command->add_option("STUDY", options->study, "study file (docs/studies.md lists every key)")->required();
  command->add_option("--out", options->out, "where the runs go (default: runs/ and the study file's name)")
      ->check(not_empty());
  command->add_option("--jobs", options->jobs, "trainings at once, which share the cores out")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command->add_option("--only", options->only,
                      "train only those whose name matches, such as \"dgc seed 2\" (regular expression)");
  command->add_flag("--dry-run", options->dry_run,
                    "train nothing; print runs, epochs, and the time by a measured step");
  command->add_flag("-q,--quiet", options->quiet, "show warnings, errors and the table alone");
  command->footer(
      "Examples:\n  dgc study configs/studies/quickstart.json --dry-run\n"
      "  dgc study configs/studies/quickstart.json --jobs 2\n\n"
      "Trains what is missing, goes on with what was stopped, and prints a table: mean and standard deviation over "
      "the\n"
      "seeds, the difference to the reference, bytes sent, and what is published. A training that fails is named "
      "below\n"
      "the table, and the others go on. Ctrl-C saves the state of all; the same command goes on.\n"
      "With --jobs, a run whose config leaves `threads` to the machine gets its share of the cores; threads change\n"
      "roundings, so set `threads` where results must not depend on --jobs.");
  command->callback([options] {
    ignore_broken_pipes();
    if (options->quiet) quiet_stderr();
    require_no_launcher("dgc study starts its trainings itself; start it once, without the launcher");
    run_study(*options);
  });
}

}  // namespace dgc
