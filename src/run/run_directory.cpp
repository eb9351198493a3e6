#include "run/run_directory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "config/config.h"
#include "run/class_names.h"
#include "run/file_io.h"
#include "run/metrics.h"
#include "run/resumable.h"
#include "run/run_state.h"
#include "run/vocabulary_file.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Whether a run itself writes what has this name in its directory.
bool is_own(const std::string& name) {
  return name == kConfigFile || name == kMetricsFile || name == kCheckpoints || name == kLogFile ||
         name == kVocabularyFile || name == kClassNamesFile || name.starts_with("events.out.tfevents.");
}

// A run may come from anywhere, and a link in it could have the run write into a file of somebody else's. The
// checkpoints may lie on another disk: each of them is written under a new name.
void require_no_links(const fs::path& run) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_own(name) || name == kCheckpoints || !entry.is_symlink(error)) continue;
    throw_user_error("{} is a link, and a run writes a file there; remove it, or give another directory",
                     entry.path().string());
  }
}

// Whether a config.json is one as a run writes it.
bool has_written(const fs::path& config) {
  return read_file(config, kMostConfigBytes) == resolved_json(run_config(config.parent_path()));
}

enum class Held { nothing, no_step, steps };

// Throws UserError for files with a run's names in a folder that is no run directory, because a run would overwrite
// these files.
Held held_by(const fs::path& run) {
  for (const char* name : {kMetricsFile, kCheckpoints, kVocabularyFile, kClassNamesFile}) {
    if (!is_there(run / kConfigFile) && is_there(run / name)) {
      throw_user_error("{} already holds {}, but is not a run directory: it has no {}; give another --out",
                       run.string(), name, kConfigFile);
    }
  }
  if (!is_there(run / kConfigFile)) return Held::nothing;
  try {
    static_cast<void>(run_config(run));
  } catch (const UserError& error) {  // usually another program's config
    throw_user_error("{} is not a run directory of this dgc ({}); give another --out", run.string(), error.what());
  }
  if (has_begun(run)) return Held::steps;
  if (!has_written(run / kConfigFile)) {
    throw_user_error("{} holds a {} that no run of this dgc has written; give another --out", run.string(),
                     kConfigFile);
  }
  return Held::no_step;
}

void refuse_steps(Held held, const fs::path& run) {
  if (held != Held::steps) return;
  throw_user_error(
      "{} already holds a run: add --resume to go on with it, --overwrite to put this one in its place, or --out DIR "
      "for a new one",
      run.string());
}

// Throws UserError for weights that would be removed with a run.
void require_elsewhere(const std::string& weights, const fs::path& run) {
  if (weights.empty()) return;
  std::error_code error;
  const fs::path from = fs::weakly_canonical(weights, error),
                 checkpoints = fs::weakly_canonical(run / kCheckpoints, error);
  if (std::ranges::mismatch(checkpoints, from).in1 != checkpoints.end()) return;
  throw_user_error("model.init_from: --overwrite would remove {} with the run in {}: copy the file elsewhere first",
                   weights, run.string());
}

// Removes what a run writes and nothing else, because people keep notes, reports and copies in the same folder. The
// config stays until describe() replaces it, so that a half-removed folder is still a run directory, and because the
// new run may have been started with that very file.
void remove_run(const fs::path& run) {
  CheckpointStore(run).remove_all();
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    const std::string name = entry.path().filename().string();
    if (is_own(name) && name != kCheckpoints && name != kConfigFile) files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    if (!error) fs::remove_all(file, error);
    if (error) throw_user_error("cannot remove {}: {}", file.string(), error.message());
  }
}

// The step at which a run has ended, where this config ends it.
std::optional<int64_t> ended_at(const fs::path& run, const Config& config) try {
  const auto& asked = config.training;
  const std::optional<RunEnd> end = end_of(run);
  if (!end) return std::nullopt;
  const bool all_epochs = end->epoch == static_cast<double>(asked.epochs);
  const bool all_steps = asked.max_steps && end->step >= *asked.max_steps;
  if (all_epochs || all_steps) return end->step;
  if (!asked.stop_after) return std::nullopt;
  const std::vector<fs::path> all = CheckpointStore(run).list();
  if (all.empty()) {  // then it has stalled if its own config has not ended it otherwise
    const TrainingOptions own = run_config(run).training;
    const bool by_config = end->epoch == static_cast<double>(own.epochs) || end->step == own.max_steps;
    return by_config ? std::nullopt : std::optional(end->step);
  }
  const RunState newest = read_run_state(Checkpoint::unverified(all.front()));
  const bool stalled = newest.step == end->step && newest.best.since >= *asked.stop_after;
  return stalled ? std::optional(end->step) : std::nullopt;
} catch (const UserError&) {
  // The metrics are damaged, which MetricsWriter mends, or the checkpoint is, and newest_checkpoint() says so.
  return std::nullopt;
}

// The checkpoint in which a finished run ended; nothing when steps are left to make, or the last one was not saved.
std::optional<Checkpoint> finished_checkpoint(const fs::path& run, const Config& config) {
  const std::optional<int64_t> step = ended_at(run, config);
  if (!step) return std::nullopt;
  const std::vector<fs::path> all = CheckpointStore(run).list();
  if (all.empty()) return std::nullopt;
  try {
    Checkpoint newest(all.front());
    if (newest.manifest().step == *step) return newest;
  } catch (const UserError&) {
    // It is damaged, and newest_checkpoint() says so.
  }
  return std::nullopt;
}

// Whether a run without checkpoints has come farther than to where its first one was due, as its last row tells.
// Damaged metrics count as such ones.
bool has_lost_checkpoints(const fs::path& run) try {
  const std::optional<Row> last = last_json_row((run / kMetricsFile).string());
  if (!last) return false;
  const CheckpointOptions due = run_config(run).checkpoint;
  const double epochs = last->number("epoch").value_or(0);
  const int64_t steps = last->integer("step").value_or(0);
  return (due.every_epochs > 0 && epochs > static_cast<double>(due.every_epochs)) ||
         (due.every_steps && steps > *due.every_steps);
} catch (const UserError&) {
  return true;
}

// Keeps the rows of a run that starts over: its checkpoints may be on a disk that is not mounted.
void set_metrics_aside(const fs::path& run) {
  const fs::path metrics = run / kMetricsFile;
  fs::path aside;
  for (int number = 1; aside.empty() || is_there(aside); ++number) {
    aside = metrics.string() + fmt::format(".{}", number);
  }
  std::error_code error;
  fs::rename(metrics, aside, error);
  if (error) throw_user_error("cannot rename {} to {}: {}", metrics.string(), aside.string(), error.message());
  spdlog::warn("the run had come farther than to its first checkpoint, and has none now; its rows are kept in {}",
               aside.string());
}

bool holds_trainings_of_study(const fs::path& folder) {
  std::error_code error;
  for (const auto& run : fs::directory_iterator(folder, error)) {
    for (const auto& training : fs::directory_iterator(run.path(), error)) {
      if (training.path().filename().string().starts_with("seed") && is_there(training.path() / kConfigFile))
        return true;
    }
  }
  return false;
}

// What is in the place of a run directory that misses this file, and what to give in its place.
std::string no_run_reason(const fs::path& given, const char* missing) {
  if (!is_there(given)) return "there is no such folder";
  const fs::path folder = given.has_parent_path() ? given.parent_path() : fs::path(".");
  std::error_code error;
  if (!fs::is_directory(given, error) && is_there(folder / kConfigFile)) {
    return fmt::format("it is a file of one; give {}", folder.string());
  }
  if (holds_trainings_of_study(given)) {
    return fmt::format("it holds those of a study; give one of them, or {} for a report of all",
                       (given / "*" / "seed*").string());
  }
  return fmt::format("it has no {}", missing);
}

// To train a run again whose results are all that is left of it would remove them.
void require_no_result(const fs::path& run) {
  if (!has_result_alone(run)) return;
  throw_user_error(
      "{} has a result and no checkpoint to go on from: --overwrite trains it again in its place, and --out DIR beside "
      "it",
      run.string());
}

}  // namespace

bool has_begun(const fs::path& run) {
  const CheckpointStore store(run);
  return !store.list().empty() || store.is_away() || has_steps(run);
}

void require_no_run(const fs::path& run) { refuse_steps(held_by(run), run); }

bool has_ended(const fs::path& run, const Config& config) { return ended_at(run, config).has_value(); }

bool has_result_alone(const fs::path& run) try {
  return end_of(run) && CheckpointStore(run).list().empty();
} catch (const UserError&) {
  return false;  // the metrics are damaged, which MetricsWriter mends
}

bool has_diverged(const fs::path& run) try {
  const std::optional<RunEnd> end = end_of(run);
  if (!end) return false;  // one that was stopped may recover
  if (!end->sound) return true;
  const std::vector<fs::path> all = CheckpointStore(run).list();
  return !all.empty() && !read_run_state(Checkpoint::unverified(all.front())).sound;
} catch (const UserError&) {
  return false;  // dgc train passes over damaged checkpoints, or says why it cannot
}

void require_no_pipes(const fs::path& run) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    if (!is_own(entry.path().filename().string()) || !entry.is_fifo(error)) continue;
    throw_user_error("{} is a pipe, and a run keeps a file there; remove it, or give another directory",
                     entry.path().string());
  }
}

bool is_file_of_run(const fs::path& file) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(file, error);
  for (fs::path path = whole; path.has_relative_path(); path = path.parent_path()) {
    const fs::path folder = path.parent_path();
    const bool is_run = fs::exists(folder / kConfigFile, error) && fs::exists(folder / kMetricsFile, error);
    if (is_run && is_own(path.filename().string())) return true;
  }
  return false;
}

fs::path run_of_config(const fs::path& file) {
  if (file.filename() != kConfigFile) return {};
  fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  try {
    const bool is_run = is_there(folder / kMetricsFile) || has_begun(folder) ||
                        (is_there(folder / kLogFile) && has_written(file));  // anybody may have a log.txt
    if (!is_run) folder.clear();
  } catch (const UserError&) {
    // There are checkpoints that cannot be listed, and RunDirectory says so.
  }
  return folder;
}

fs::path run_path(const Config& config, const TrainOptions& options) {
  return options.out.empty() ? fs::path(config.output) : options.out;
}

RunDirectory::RunDirectory(const Joined& joined, fs::path run) : path_(std::move(run)), finished_(joined.finished) {
  if (!joined.checkpoint.empty()) checkpoint_ = Checkpoint::unverified(path_ / kCheckpoints / joined.checkpoint);
}

RunDirectory::Joined RunDirectory::for_others() const {
  return {checkpoint_ ? checkpoint_->path().filename().string() : "", finished_};
}

// Paths are relative to the folder in which dgc was started, and a run may be read from another folder.
RunDirectory::RunDirectory(const Config& config, const TrainOptions& options, const Vocabulary* vocabulary,
                           std::vector<std::string> class_names)
    : path_(run_path(config, options)),
      config_json_(resolved_json(with_absolute_paths(config))),
      vocabulary_(vocabulary),
      class_names_(std::move(class_names)) {
  make_directory(path_);
  lock_ = std::make_unique<RunLock>(path_);
  require_no_pipes(path_);
  require_no_links(path_);
  CheckpointStore(path_).restore_replaced();
  const Held held = held_by(path_);
  if (!options.resume && !options.overwrite) refuse_steps(held, path_);
  if (held == Held::steps && options.resume) {
    if (vocabulary != nullptr) require_run_vocabulary(path_, *vocabulary);
    require_resumable(path_, run_config(path_), config);
    require_run_class_names(path_, class_names_);
    finished_ = (checkpoint_ = finished_checkpoint(path_, config)).has_value();
    if (finished_) return;
    log_.emplace(path_);
    checkpoint_ = newest_checkpoint(path_);
    if (!checkpoint_) require_no_result(path_);
  } else {
    replaces_ = held != Held::nothing;
    if (replaces_) {
      require_elsewhere(config.model.init_from, path_);
    } else {
      refuse_broken_link(path_ / kCheckpoints);  // no checkpoint could be saved there
    }
  }
  if (!options.resume || checkpoint_) return;
  starts_over_ = held == Held::nothing
                     ? fmt::format("there is no run in {} to go on with: starting from the beginning", path_.string())
                     : fmt::format("the run in {} has no checkpoint yet: starting from the beginning", path_.string());
}

void RunDirectory::begin() {
  if (replaces_) {
    const fs::path config = path_ / kConfigFile;
    if (read_file(config, kMostConfigBytes) != config_json_) require_writable(config);  // before anything is removed
    remove_run(path_);
  }
  if (!log_) log_.emplace(path_);
  if (!starts_over_.empty()) spdlog::warn(starts_over_);
  if (!starts_over_.empty() && is_there(path_ / kMetricsFile) && has_lost_checkpoints(path_)) set_metrics_aside(path_);
  remove_abandoned(path_);
}

void RunDirectory::describe() const {
  write_if_changed(path_ / kConfigFile, config_json_);  // first, as held_by() refuses the other two without it
  if (vocabulary_ != nullptr) save_vocabulary(path_, *vocabulary_);
  save_class_names(path_, class_names_);
}

void RunDirectory::hold(int64_t step) {
  if (!is_away()) return;
  make_directory(path_);
  auto lock = std::make_unique<RunLock>(path_);
  if (!is_there(path_ / kConfigFile)) {
    spdlog::warn(
        "{} was moved or removed while it was being trained; it is made again for checkpoints, and {} and log.txt go "
        "on where they were",
        path_.string(), kMetricsFile);
  } else if (read_file(path_ / kConfigFile, kMostConfigBytes) != config_json_) {
    throw_user_error("{} holds another run by now", path_.string());
  }
  const std::optional<Checkpoint> found = newest_checkpoint(path_);
  if (found && found->manifest().step > step) {
    throw_user_error("{} holds a run by now that has come to step {} without this process, which is at step {}",
                     path_.string(), found->manifest().step, step);
  }
  describe();
  moved_locks_.push_back(std::exchange(lock_, std::move(lock)));
}

void require_file_of_run(const fs::path& run, const char* name) {
  std::error_code error;
  const bool there = fs::exists(run / name, error);
  if (error) throw_user_error("{}: {}", (run / name).string(), error.message());
  if (!there) throw_user_error("{} is not a run directory: {}", run.string(), no_run_reason(run, name));
}

Config run_config(const fs::path& run, const std::vector<std::string>& overrides) {
  require_file_of_run(run, kConfigFile);
  require_no_pipes(run);
  return load_run_config((run / kConfigFile).string(), overrides);
}

}  // namespace dgc
