#include "tools/report/study.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <regex>

#include "commands/children.h"
#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/supervise.h"
#include "config/config.h"
#include "run/checkpoint.h"
#include "run/log.h"
#include "run/number_text.h"
#include "run/run_directory.h"
#include "tensor/cores.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/bench/bench.h"
#include "tools/report/report.h"
#include "train/ranks/interrupt.h"
#include "train/trainer.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct StudyArguments {
  std::string study, only;
  fs::path out;
  int jobs = 1;
  bool dry_run = false, quiet = false;
};

// The last thing that a child has said, without the mark in front of it.
std::string last_words(const fs::path& output) {
  std::ifstream file(output);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  const size_t colon = last.find("error: ");
  return colon == std::string::npos ? last : last.substr(colon + 7);
}

struct Progress {
  double epochs = 0;
  int64_t steps = 0;
};

Progress progress_of(const fs::path& run) {
  if (!has_steps(run)) return {};
  const std::optional<Row> last = last_json_row((run / kMetricsFile).string());
  if (!last) return {};
  return {last->number("epoch").value_or(0), last->integer("step").value_or(0)};
}

int64_t workers_of(const Config& config) { return config.ranks * config.workers_per_rank; }

// Whether a difference makes another experiment. Paths may change, as a study and its data may be moved.
bool is_another(const ConfigDifference& difference) {
  if (difference.path == "threads") return false;
  const bool parts_of_speech = difference.path.starts_with("data.") && difference.a.starts_with('[');
  return !is_free_on_resume(difference.path) || difference.path == "exchange.wait" || parts_of_speech;
}

std::string difference_from_study(const StudyTraining& training) {
  const Config made = run_config(training.directory), &asked = training.config;
  for (const ConfigDifference& difference : config_differences(made, asked)) {
    if (!is_another(difference)) continue;
    return fmt::format("with {} {}, and the study says {}", difference.path,
                       difference.a.empty() ? "unset" : difference.a, difference.b.empty() ? "nothing" : difference.b);
  }
  if (workers_of(made) != workers_of(asked)) {
    return fmt::format("with another number of workers, {}, and the study says {}", workers_of(made),
                       workers_of(asked));
  }
  const Progress progress = progress_of(training.directory);
  if (progress.epochs > static_cast<double>(asked.training.epochs)) {
    return fmt::format("for {:g} epochs, and the study says {}", progress.epochs, asked.training.epochs);
  }
  if (asked.training.max_steps && progress.steps > *asked.training.max_steps) {
    return fmt::format("for {} steps, and the study says {}", progress.steps, *asked.training.max_steps);
  }
  return "";
}

// What keeps a training from going on in its directory, and what is there from being its result; or "".
std::string other_experiment(const StudyTraining& training) {
  try {
    const std::string difference = has_steps(training.directory) ? difference_from_study(training) : "";
    if (difference.empty()) return "";
    return fmt::format("{} was trained {}; remove it, or give another --out", training.directory.string(), difference);
  } catch (const UserError& damaged) {
    return damaged.what();
  }
}

bool has_diverged(const fs::path& run) {
  const CheckpointStore store(run);
  const std::vector<fs::path> all = store.list();
  return !all.empty() && store.newest_sound() != all.front();
}

// Whether a training has come to the end that the study asks for now. One that has diverged is given to dgc train
// again, which says so.
bool is_done(const StudyTraining& training) {
  const std::optional<int64_t> step = final_step(training.directory);
  if (!step || has_diverged(training.directory)) return false;
  const auto& asked = training.config.training;
  return asked.stop_after || (asked.max_steps && *step >= *asked.max_steps) ||
         progress_of(training.directory).epochs >= static_cast<double>(asked.epochs);
}

double epochs_left(const StudyTraining& training) {
  const auto all = static_cast<double>(training.config.training.epochs);
  try {
    return all - progress_of(training.directory).epochs;
  } catch (const UserError&) {  // a damaged training fails when its turn comes
    return all;
  }
}

// Trains what a study lacks, so many trainings at once, each as a child process.
class StudyRunner {
 public:
  StudyRunner(std::vector<StudyTraining> missing, int jobs)
      : waiting_(missing.begin(), missing.end()),
        all_(waiting_.size()),
        jobs_(std::clamp(static_cast<int>(missing.size()), 1, jobs)) {
    for (const StudyTraining& training : waiting_) to_do_ += epochs_left(training);
  }

  // Returns a sentence for each training that failed. Throws Interrupted once all children have saved their state.
  std::vector<std::string> run() {
    const HeldSignals signals;
    while (!waiting_.empty() || !running_.empty()) {
      while (!stopped_ && !waiting_.empty() && running_.size() < static_cast<size_t>(jobs_)) start_next(signals);
      if (running_.empty()) {
        if (stopped_) break;
        continue;  // what was to start has failed already
      }
      constexpr int kSecondsBetweenLines = 60;
      const std::optional<int> signal = signals.next_within(kSecondsBetweenLines);
      if (!signal) {
        tell_progress();
      } else if (*signal == SIGCHLD) {
        collect();
      } else {
        if (!stopped_) spdlog::warn("stopping: {} trainings save their state", running_.size());
        stopped_ = true;
        for (const auto& [child, training] : running_) kill(child, *signal);
      }
    }
    if (stopped_) throw Interrupted();
    return failures_;
  }
  int exit_code() const { return exit_code_; }

 private:
  fs::path output_of(const StudyTraining& training) const { return training.directory.string() + ".txt"; }

  void fail(const StudyTraining& training, const std::string& why, int code) {
    failures_.push_back(fmt::format("{} failed: {}", training.name(), why));
    spdlog::error("{}", printable(failures_.back()));
    if (exit_code_ == 0) exit_code_ = code;
  }

  void start_next(const HeldSignals& signals) {
    const StudyTraining training = waiting_.front();
    waiting_.pop_front();
    if (const std::string why = other_experiment(training); !why.empty()) {
      fail(training, why, kChildUserError);
      return;
    }
    std::vector<std::string> command = {own_program(), "train", training.run->config};
    for (const std::string& text : training.run->overrides_for(training.seed)) {
      command.insert(command.end(), {"--set", text});
    }
    if (has_steps(training.directory)) {
      command.insert(command.end(),
                     {"--resume", "--set", fmt::format("threads={}", run_config(training.directory).threads)});
    } else if (training.config.threads == 0 && jobs_ > 1) {
      const int threads = std::max(1, usable_cores() / (jobs_ * static_cast<int>(training.config.ranks)));
      command.insert(command.end(), {"--set", fmt::format("threads={}", threads)});
    }
    command.insert(command.end(), {"--out", training.directory.string()});
    fs::create_directories(training.directory.parent_path());
    running_.emplace(start_child(command, signals, output_of(training)), training);
    spdlog::info("{}: {}", training.name(), has_steps(training.directory) ? "goes on" : "starts");
  }

  void collect() {
    int status = 0;
    for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running_.find(child);
      if (found == running_.end()) continue;
      const StudyTraining training = found->second;
      running_.erase(found);
      const int code = exit_code_of(status);
      if (code == kChildInterrupted) {
        if (!stopped_) spdlog::warn("somebody has stopped {} alone, and so the study stops", training.name());
        stopped_ = true;
      } else if (code == kChildNotStarted) {
        fail(training,
             fmt::format("it could not be started: {} is gone or {} cannot be written", own_program(),
                         output_of(training).string()),
             kChildUserError);
      } else if (const std::string other = code == 0 ? other_experiment(training) : ""; !other.empty()) {
        fail(training, other, kChildUserError);  // the config has changed while others were trained
      } else if (code == 0) {
        ++done_;
        spdlog::info("{}: done, {} of {}", training.name(), done_, all_);
      } else {
        const std::string words = last_words(output_of(training));
        fail(training, code >= kChildSignal || words.empty() ? "it " + end_text(status) : words, code);
      }
    }
  }

  void tell_progress() const {
    double to_do = 0;
    std::string where;
    for (const auto& [child, training] : running_) {
      const double here = epochs_left(training);
      to_do += here;
      const double epochs = static_cast<double>(training.config.training.epochs);
      where +=
          fmt::format("{}{} epoch {:.1f} of {:g}", where.empty() ? "" : ", ", training.name(), epochs - here, epochs);
    }
    for (const StudyTraining& training : waiting_) to_do += epochs_left(training);
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double made = to_do_ - to_do;
    const std::string rest = made > 0 ? fmt::format("; about {} left", duration_text(seconds * to_do / made)) : "";
    spdlog::info("{} of {} done; {}{}", done_, all_, where, rest);
  }

  std::deque<StudyTraining> waiting_;
  std::map<pid_t, StudyTraining> running_;
  std::vector<std::string> failures_;
  size_t all_ = 0, done_ = 0;
  int jobs_ = 1, exit_code_ = 0;
  double to_do_ = 0;  // epochs, at the start
  bool stopped_ = false;
  Clock::time_point start_ = Clock::now();
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

// Why what lies in a training's directory does not count, or "".
std::string unsound(const StudyTraining& training) {
  if (std::string other = other_experiment(training); !other.empty()) return other;
  return has_diverged(training.directory) ? "the run has diverged" : "";
}

// Of what lies in the study's folder, the trainings whose result counts. What does not count becomes a note, unless the
// training has failed just now.
std::vector<StudyTraining> sound_ones(const std::vector<StudyTraining>& trainings, std::vector<std::string>& notes) {
  std::vector<StudyTraining> sound;
  for (const StudyTraining& training : trainings) {
    const std::string why = unsound(training);
    if (why.empty()) {
      sound.push_back(training);
      continue;
    }
    const auto is_told = [&](const std::string& note) { return note.starts_with(training.name() + " failed: "); };
    if (std::ranges::none_of(notes, is_told))
      notes.push_back(fmt::format("{} does not count: {}", training.name(), why));
  }
  return sound;
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
        const double left = epochs_left(training) * static_cast<double>(bench.steps_per_epoch);
        const std::optional<int64_t> most = config.training.max_steps;
        const int64_t made = progress_of(training.directory).steps;
        steps += most ? std::min(left, static_cast<double>(*most - made)) : left;
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
  const StudyTable table = study_table(study, trainings, groups, notes);
  fmt::print("{}", study_text(table));  // before the report is written, as the disk may be full
  std::fflush(stdout);
  fs::create_directories(out);
  write_study_report(study, table, groups, out / "report.html");
  fmt::print("report: {}\n", printable((out / "report.html").string()));
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
