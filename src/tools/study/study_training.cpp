#include "tools/study/study_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/config.h"
#include "json/lines.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "run/resumable.h"
#include "run/run_directory.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

// Whether a difference makes another experiment, or changes what the study's table says of it. Paths may change, as a
// study and its data may be moved.
bool is_another(const ConfigDifference& difference) {
  if (difference.path == "threads") return false;
  // Many of these keys change no bit of the weights, but all others may change the bytes that are sent.
  const bool sends_alike = difference.path == "exchange.communicator" || difference.path == "exchange.interface" ||
                           difference.path == "exchange.failure_timeout_s";
  if (difference.path.starts_with("exchange.")) return !sends_alike;
  if (difference.path == "model.vocabulary" && difference.b == "0") return false;  // as many as the text has
  const bool parts_of_speech = difference.path.starts_with("data.") && difference.a.starts_with('[');
  const auto is_unset = [](const std::string& path) { return path == R"("")"; };
  if (difference.path == "model.init_from" && is_unset(difference.a) != is_unset(difference.b)) return true;
  return !is_free_on_resume(difference.path) || parts_of_speech;
}

struct StudyProgress {
  double epochs = 0;
  int64_t steps = 0;
};

StudyProgress progress_if_sound(const StudyTraining& training) try {
  require_no_pipes(training.directory);
  if (!has_steps(training.directory)) return {};
  const std::optional<Row> last = last_json_row((training.directory / kMetricsFile).string());
  if (!last) return {};
  return {last->number("epoch").value_or(0), last->integer("step").value_or(0)};
} catch (const UserError&) {
  return {};
}

std::string difference_from_study(const StudyTraining& training, const Config& made) {
  const Config& asked = training.config;
  for (const ConfigDifference& difference : config_differences(made, asked)) {
    if (!is_another(difference)) continue;
    return fmt::format("with {} {}, and the study says {}", difference.path,
                       difference.a.empty() ? "unset" : difference.a, difference.b.empty() ? "nothing" : difference.b);
  }
  if (made.workers() != asked.workers()) {
    return fmt::format("with another number of workers, {}, and the study says {}", made.workers(), asked.workers());
  }
  const StudyProgress progress = progress_if_sound(training);
  if (progress.epochs > static_cast<double>(asked.training.epochs)) {
    return fmt::format("for {:g} epochs, and the study says {}", progress.epochs, asked.training.epochs);
  }
  if (asked.training.max_steps && progress.steps > *asked.training.max_steps) {
    return fmt::format("for {} steps, and the study says {}", progress.steps, *asked.training.max_steps);
  }
  return "";
}

// Returns what the study asks for, with the run's own values for what it leaves to the machine and to the data.
Config to_go_on_with(Config asked, const Config& made) {
  asked.threads = made.threads;
  if (asked.model.lstm.vocabulary == 0) asked.model.lstm.vocabulary = made.model.lstm.vocabulary;
  return asked;
}

}  // namespace

std::string StudyTraining::name() const { return fmt::format("{} seed {}", run->name, seed); }

fs::path StudyTraining::config_file() const { return directory.string() + ".json"; }

fs::path StudyTraining::output() const { return directory.string() + ".txt"; }

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

double epochs_made(const StudyTraining& training) { return progress_if_sound(training).epochs; }

double epochs_saved(const StudyTraining& training) try {
  const std::vector<fs::path> checkpoints = CheckpointStore(training.directory).list();
  const StudyProgress made = progress_if_sound(training);
  if (checkpoints.empty() || made.steps == 0) return 0;
  const int64_t saved = Checkpoint::unverified(checkpoints.front()).manifest().step;
  return made.epochs * static_cast<double>(saved) / static_cast<double>(made.steps);
} catch (const UserError&) {
  return 0;
}

double steps_per_epoch(const StudyTraining& training) {
  const StudyProgress made = progress_if_sound(training);
  return made.epochs > 0 ? static_cast<double>(made.steps) / made.epochs : 0;
}

double epochs_left(const StudyTraining& training, double epoch_steps) {
  const StudyProgress made = progress_if_sound(training);
  const auto& asked = training.config.training;
  double left = static_cast<double>(asked.epochs) - made.epochs;
  if (epoch_steps == 0) epoch_steps = steps_per_epoch(training);
  if (asked.max_steps && epoch_steps > 0) {
    left = std::min(left, static_cast<double>(*asked.max_steps - made.steps) / epoch_steps);
  }
  return std::max(0.0, left);
}

Standing standing_of(const StudyTraining& training) {
  using enum Standing::State;
  const fs::path& run = training.directory;
  try {
    require_no_pipes(run);
    if (!has_begun(run)) return {fresh, ""};
    const Config made = run_config(run);
    if (const std::string difference = difference_from_study(training, made); !difference.empty()) {
      return {refused, fmt::format("{} was trained {}; remove it, or give another --out", run.string(), difference)};
    }
    if (has_diverged(run)) {
      return {refused, fmt::format("the run has diverged; {} has more on it", training.output().string())};
    }
    require_resumable(run, made, to_go_on_with(training.config, made));  // or what has ended was another training
    if (has_ended(run, training.config)) return {done, ""};
    if (has_result_alone(run)) {
      return {refused, fmt::format("{} has a result and no checkpoint to go on from; remove it, or give another --out",
                                   run.string())};
    }
    return {begun, ""};
  } catch (const UserError& why) {
    return {refused, why.what()};
  }
}

void require_own_file(const fs::path& file) {
  std::error_code error;
  const char* const kind = fs::is_symlink(file, error) ? "link" : fs::is_fifo(file, error) ? "pipe" : nullptr;
  if (kind != nullptr) throw_user_error("{} is a {}, and a study keeps a file there", file.string(), kind);
}

}  // namespace dgc
