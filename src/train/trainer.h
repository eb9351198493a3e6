#pragma once

#include <filesystem>
#include <functional>

#include "config/options.h"
#include "run/run_directory.h"

namespace dgc {

// Throws UserError when a launcher has started this process as one of several. A process that starts the ranks itself
// calls this function. `instead` says what the user should do; {} in it becomes the number of processes.
void require_no_launcher(const std::string& instead);

// Trains as the config says and fills the run directory: config.json, metrics.jsonl, log.txt, TensorBoard events,
// checkpoints. Returns the run directory, or nothing in a process that is not rank 0. Throws Interrupted after a
// signal, once the state is saved; UserError for what the user can mend, such as a run that has diverged, or a disk
// that is too full for the last checkpoint: an earlier one that does not fit is only a warning. A finished run is left
// as it is. Nothing that an earlier run saved is touched before everything has been checked. Processes that a launcher
// has started are the ranks of one run; each has already told the errors that it throws (train/ranks/failure.h), also
// those of `load`, which is called once.
using ConfigSource = std::function<Config()>;
std::filesystem::path train(const ConfigSource& load, const TrainOptions&);

}  // namespace dgc
