#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <regex>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/short_spins.h"
#include "commands/supervise.h"
#include "run/file_io.h"
#include "run/log.h"
#include "run/number_text.h"
#include "run/run_lock.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/bench/bench.h"
#include "tools/report/report.h"
#include "tools/study/study_runner.h"
#include "tools/study/study_table.h"
#include "train/initial_weights.h"
#include "train/ranks/failure.h"
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

// While it lives, output to a terminal or pipe that is gone is lost, and the study goes on.
class BrokenPipesIgnored {
 public:
  BrokenPipesIgnored() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~BrokenPipesIgnored() { std::signal(SIGPIPE, before_); }
  BrokenPipesIgnored(const BrokenPipesIgnored&) = delete;
  BrokenPipesIgnored& operator=(const BrokenPipesIgnored&) = delete;

 private:
  void (*before_)(int);
};

std::vector<StudyTraining> wanted_of(const std::vector<StudyTraining>& trainings, const std::string& only) {
  std::regex wanted;
  try {
    wanted = std::regex(only);
  } catch (const std::regex_error&) {
    throw_user_error("--only {}: this is no regular expression", only);
  }
  std::vector<StudyTraining> found;
  std::ranges::copy_if(trainings, std::back_inserter(found),
                       [&](const StudyTraining& training) { return std::regex_search(training.name(), wanted); });
  if (found.empty()) {
    throw_user_error("--only {}: no training of the study has such a name; the first is {}", only,
                     trainings.front().name());
  }
  return found;
}

// "20 epochs", with the other ways in which a training ends.
std::string length_text(const Config& config) {
  const TrainingOptions& o = config.training;
  std::string text = counted(o.epochs, "epoch");
  if (o.max_steps) text += " or " + counted(*o.max_steps, "step");
  if (o.stop_after) text += " at most";
  return text;
}

// Measures a step of a run, whose trainings take equally long, prints what its trainings will take, and returns the
// seconds.
double print_time(const std::vector<StudyTraining>& trainings) {
  constexpr BenchOptions kShort{.warmup = 1, .steps = 1, .repeats = 3};
  const TrainBench bench = bench_train(trainings.front().config, kShort);
  const auto epoch_steps = static_cast<double>(bench.steps_per_epoch);
  double steps = 0;
  for (const StudyTraining& training : trainings) {
    const double again = epochs_made(training) - epochs_saved(training);
    steps += (epochs_left(training, epoch_steps) + again) * epoch_steps;
  }
  const double seconds = steps * bench.ms_per_step / 1000;
  fmt::print(", {} steps of {:.1f} ms: {}", count_text(steps), bench.ms_per_step, duration_text(seconds));
  return seconds;
}

// Ends with the exit code of a study that has a training which fails, where one will.
void print_plan(const Study& study, const std::vector<StudyTraining>& wanted) {
  double total = 0;
  std::vector<std::string> failures;
  for (const StudyRun& run : study.runs) {
    std::vector<StudyTraining> missing;
    bool begins = false;  // one of the missing, and with the first weights that the config names
    std::string length;
    for (const StudyTraining& training : wanted) {
      if (training.run != &run) continue;
      length = length_text(training.config);
      const Standing standing = standing_of(training);
      if (standing.state == Standing::State::refused) {
        failures.push_back(fmt::format("{} will fail: {}", training.name(), printable(standing.why)));
      } else if (standing.state != Standing::State::done) {
        missing.push_back(training);
        begins = begins || standing.state == Standing::State::fresh;
      }
    }
    if (length.empty()) continue;  // left out by --only
    fmt::print("{}: {}, {} of {} to train", run.name, length, missing.size(), counted(std::ssize(run.seeds), "seed"));
    try {
      if (begins) require_initial_weights(missing.front().config);
      if (!missing.empty()) total += print_time(missing);
    } catch (const UserError& error) {
      failures.push_back(fmt::format("{} will fail: {}", run.name, printable(error.what())));
    }
    fmt::print("\n");
  }
  for (const std::string& failure : failures) fmt::print("{}\n", failure);
  const char* of_those = failures.empty() ? "" : "of those that will not fail, ";
  if (failures.empty() || total > 0) {
    fmt::print("in all, {}one after another and without evaluations: {}\n", of_those, duration_text(total));
  }
  if (!failures.empty()) throw SupervisedEnd{kUserError};
}

void run_study(const StudyArguments& options) {
  const Study study = load_study(options.study);
  const fs::path out = options.out.empty() ? fs::path("runs") / fs::path(options.study).stem() : options.out;
  const std::vector<StudyTraining> trainings = trainings_of(study, out);
  std::vector<StudyTraining> wanted = wanted_of(trainings, options.only);
  if (options.dry_run) return print_plan(study, wanted);
  std::erase_if(wanted, [](const StudyTraining& one) { return standing_of(one).state == Standing::State::done; });
  std::optional<RunLock> lock;  // two studies would take trainings from one another
  if (!wanted.empty()) {
    make_directory(out);
    lock.emplace(out);
  }
  require_own_file(out / kStudyReport);
  // Not of those that are missing: what a training gets of the cores must not depend on how many are done.
  StudyRunner runner(wanted, std::min(options.jobs, static_cast<int>(trainings.size())));
  std::vector<TrainingNote> notes = [&] {
    const BrokenPipesIgnored ignored;
    return runner.run();
  }();
  const std::vector<RunGroup> groups = study_groups(study, trainings, notes);
  const SummaryTable table = study_table(study, trainings, groups, notes);
  std::exception_ptr no_report;  // the disk may be full, and the table shall be seen all the same
  try {
    write_summary_report(study.name, table, groups, out / kStudyReport);
  } catch (const std::exception&) {
    no_report = std::current_exception();
  }
  fmt::print("{}", summary_text(table));  // behind the report, as nobody may read the pipe any more
  std::fflush(stdout);
  if (no_report) std::rethrow_exception(no_report);
  fmt::print("report: {}\n", printable((out / kStudyReport).string()));
  if (runner.exit_code() != 0) throw SupervisedEnd{runner.exit_code()};
}

}  // namespace

void add_study_command(CLI::App& app) {
  auto options = std::make_shared<StudyArguments>();
  CLI::App* command = app.add_subcommand("study", "Train runs with several seeds each, and compare them");
  command->add_option("STUDY", options->study, "study file (docs/studies.md lists every key)")->required();
  command->add_option("--out", options->out, "where the runs go (default: runs/ and the study file's name)")
      ->check(run_folder());
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
    if (options->dry_run) restart_with_short_spins();  // it times steps; a training restarts itself
    if (options->quiet) quiet_stderr();
    require_no_launcher("dgc study starts its trainings itself; start it once, without the launcher");
    unsetenv("DGC_RENDEZVOUS");  // each training is one process, which meets no other
    run_study(*options);
  });
}

}  // namespace dgc
