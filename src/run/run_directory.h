#pragma once

#include <filesystem>
#include <optional>

#include "config/options.h"
#include "data/text/vocabulary.h"
#include "run/checkpoint.h"
#include "run/log.h"
#include "run/run_lock.h"

namespace dgc {

struct TrainOptions {
  std::filesystem::path out;  // the run directory; empty: the config's output
  bool resume = false;        // from the newest good checkpoint in it, or from the start when there is none yet
  bool overwrite = false;     // takes the place of the run that is in it; not with resume
};

std::filesystem::path run_path(const Config&, const TrainOptions&);

// RUN/: where one training keeps everything it writes. While this lives, no other process trains into it, and messages
// also go to its log.
class RunDirectory {
 public:
  // A fresh run makes the directory, takes the place of a run that has made no step, and of any run with --overwrite;
  // it refuses a directory that holds another. A resumed one finds its newest good checkpoint, and refuses a config or
  // a vocabulary (of text, else null) that differs in anything that changes results. Writes nothing where the run has
  // finished. Throws UserError, and then has changed nothing of what is there.
  RunDirectory(const Config&, const TrainOptions&, const Vocabulary*);

  // The run directory that rank 0, another process, has just made or resumed: read only.
  struct Joined {};
  RunDirectory(Joined, const Config&, const TrainOptions&);

  const std::filesystem::path& path() const { return path_; }
  const std::optional<Checkpoint>& resumed_from() const { return checkpoint_; }
  // Whether an earlier attempt has made all steps that the config asks for. Then it ended in resumed_from().
  bool finished() const { return finished_; }

 private:
  std::filesystem::path path_;
  std::optional<RunLock> lock_;
  std::optional<RunLog> log_;
  std::optional<Checkpoint> checkpoint_;
  bool finished_ = false;
};

// The config that a run directory was made with. Throws UserError when it is not one.
Config run_config(const std::filesystem::path& run, const std::vector<std::string>& overrides = {});

}  // namespace dgc
