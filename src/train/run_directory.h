#pragma once

#include <filesystem>
#include <optional>

#include "config/options.h"
#include "train/checkpoint.h"
#include "train/log.h"
#include "train/trainer.h"

namespace dgc {

std::filesystem::path run_path(const Config&, const TrainOptions&);

// RUN/: where one training keeps everything it writes. While this lives, messages also go to its log.
class RunDirectory {
 public:
  // A fresh run makes the directory and refuses one that already holds a run. A resumed one finds its newest good
  // checkpoint, and refuses a config that differs in anything that changes results. Throws UserError.
  RunDirectory(const Config&, const TrainOptions&);

  // The run directory that rank 0, another process, has just made or resumed: read only.
  struct Joined {};
  RunDirectory(Joined, const Config&, const TrainOptions&);

  const std::filesystem::path& path() const { return path_; }
  const std::optional<Checkpoint>& resumed_from() const { return checkpoint_; }

 private:
  std::filesystem::path path_;
  std::optional<RunLog> log_;
  std::optional<Checkpoint> checkpoint_;
};

// The config that a run directory was made with. Throws UserError when it is not one.
Config run_config(const std::filesystem::path& run, const std::vector<std::string>& overrides = {});

}  // namespace dgc
