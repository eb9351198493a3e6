#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/text/vocabulary.h"
#include "run/checkpoint.h"
#include "run/log.h"
#include "run/run_lock.h"

namespace dgc {

inline constexpr const char* kConfigFile = "config.json";

struct TrainOptions {
  std::filesystem::path out;  // the run directory; empty: the config's output
  bool resume = false;        // goes on from the newest good checkpoint of `out`, or starts when there is none yet
  bool overwrite = false;     // replaces the run in `out`; excludes resume
};

std::filesystem::path run_path(const Config&, const TrainOptions&);

// Throws UserError for a pipe under the name of a run's file, because who opens one waits until somebody opens its
// other end. To be called before any file of a run is opened.
void require_no_pipes(const std::filesystem::path& run);

// Throws UserError where the folder holds a run that has begun, or what a run would overwrite. dgc train refuses to
// train there without --resume or --overwrite.
void require_no_run(const std::filesystem::path& run);

// Whether a file lies in a run directory and is one that the run itself writes, or lies among its checkpoints.
bool is_file_of_run(const std::filesystem::path& file);

// Whether a run has made a step or a checkpoint. Damaged metrics count as some with steps, and checkpoints that are
// away (CheckpointStore::is_away) as some that there are. Throws UserError when the folder of the checkpoints cannot be
// read.
bool has_begun(const std::filesystem::path& run);

// The run directory whose own config.json this file is, which a run's log, metrics or checkpoints beside it tell; empty
// where it is none. Does not throw, so that each of several ranks comes to where they compare what they were given.
std::filesystem::path run_of_config(const std::filesystem::path& file);

// Whether a run has ended where this config ends it: it has made all epochs, or max_steps, or its validation loss has
// not fallen for as long as stop_after says. The last is told by the newest checkpoint; where none is left, nothing
// contradicts it. Where what tells it is damaged, the run has not ended.
bool has_ended(const std::filesystem::path& run, const Config&);
// Whether there is a result, of any number of epochs, and no checkpoint from which the training could go on.
bool has_result_alone(const std::filesystem::path& run);
// Whether a run has ended with numbers that are not finite, as its final row or its last checkpoint tells.
bool has_diverged(const std::filesystem::path& run);

// RUN/, the directory in which one training keeps everything it writes. While a RunDirectory lives, no other process
// trains into the directory, and messages also go to RUN/log.txt.
class RunDirectory {
 public:
  // `vocabulary` is null unless the data is text, and has to outlive the RunDirectory; `class_names` are empty unless
  // the data names its classes. A fresh run makes the directory, in which it may replace a run that has made no step
  // or, with --overwrite, any run; a directory that holds another run is refused. A resumed run finds its newest good
  // checkpoint; a config, a vocabulary or names of classes that differ in anything that changes results are refused,
  // and so is a run that has ended and keeps no checkpoint. Throws UserError. Before begin() and describe() only the
  // log.txt of a resumed run grows, and a checkpoint that a killed save had moved aside gets its name back.
  RunDirectory(const Config&, const TrainOptions&, const Vocabulary* vocabulary, std::vector<std::string> class_names);

  // Opens, for reading only, the run directory that rank 0, another process, has just made or resumed, and the very
  // checkpoint from which rank 0 goes on. Throws UserError when that one is damaged or not there.
  struct Joined {
    std::string checkpoint;  // its name; empty: there is none
    bool finished = false;
  };
  RunDirectory(const Joined&, std::filesystem::path run);
  Joined for_others() const;

  const std::filesystem::path& path() const { return path_; }
  const std::optional<Checkpoint>& resumed_from() const { return checkpoint_; }
  // Whether an earlier attempt has ended where the config ends the run (has_ended()). Then it ended in resumed_from().
  bool finished() const { return finished_; }

  // Removes the run that this one replaces, and opens log.txt unless it is open. To be called when nothing can be
  // refused any more that does not need the checkpoint of this run itself. Throws UserError for files that cannot be
  // removed or written.
  void begin();
  // Writes what tells people and programs which run this is: config.json, and the names of words and classes. To be
  // called when the checkpoint has been taken over. Throws UserError for files that cannot be written.
  void describe() const;

  // To be called before a checkpoint of this step is saved. Where somebody has moved or removed the directory since, it
  // is made again, so that the checkpoint can be resumed, and a warning says so. Throws UserError when another run is
  // there now, or one that has come farther. In a process that has Joined it does nothing.
  void hold(int64_t step);
  // Whether somebody has moved or removed the directory since, and hold() has not made it again. In a process that has
  // Joined it is false.
  bool is_away() const { return lock_ != nullptr && !lock_->holds(); }

 private:
  std::filesystem::path path_;
  std::string config_json_;
  const Vocabulary* vocabulary_ = nullptr;
  std::vector<std::string> class_names_;
  std::unique_ptr<RunLock> lock_;
  std::vector<std::unique_ptr<RunLock>> moved_locks_;  // of folders that were moved, where the metrics still go
  std::optional<RunLog> log_;
  std::optional<Checkpoint> checkpoint_;
  bool replaces_ = false;    // another run, whose files are there until begin()
  std::string starts_over_;  // why a resumed run has to; empty: it has not
  bool finished_ = false;
};

// Throws UserError that says what is there in the place of a run directory, where it has no file of this name.
void require_file_of_run(const std::filesystem::path& run, const char* name);

// The config that a run directory was made with. Throws UserError when it is not one, and as require_no_pipes() does.
Config run_config(const std::filesystem::path& run, const std::vector<std::string>& overrides = {});

}  // namespace dgc
