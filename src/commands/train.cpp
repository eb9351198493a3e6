#include <spdlog/spdlog.h>
#include <stdio_ext.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>
#include <system_error>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/overrides.h"
#include "commands/short_spins.h"
#include "commands/supervise.h"
#include "config/config.h"
#include "run/log.h"
#include "run/run_directory.h"
#include "run/run_lock.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/report/report.h"
#include "train/ranks/interrupt.h"
#include "train/trainer.h"

namespace dgc {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  TrainOptions train;
  int max_restarts = 0;
  std::string launcher;
  bool quiet = false;
};

SuperviseOptions supervised(const TrainArguments& options) {
  SuperviseOptions child;
  // A name that begins with a dash would be an option.
  child.arguments = {"train", options.config.starts_with('-') ? "./" + options.config : options.config};
  for (const std::string& key : options.overrides) child.arguments.insert(child.arguments.end(), {"--set", key});
  if (!options.train.out.empty()) child.arguments.insert(child.arguments.end(), {"--out", options.train.out.string()});
  if (options.train.resume) child.arguments.emplace_back("--resume");
  if (options.train.overwrite) child.arguments.emplace_back("--overwrite");
  if (options.quiet) child.arguments.emplace_back("--quiet");
  child.max_restarts = options.max_restarts;
  if (options.launcher.find_first_of("'\"\\") != std::string::npos) {
    throw_user_error("--launch: it is split at blanks, without regard to quotes: put such a command into a script");
  }
  std::istringstream words(options.launcher);
  for (std::string word; words >> word;) child.launcher.push_back(word);
  return child;
}

// A run's own config.json names the output that its config once had, and --out may have put the run elsewhere.
std::filesystem::path out_of(const TrainArguments& options) {
  const auto is_output = [](const std::string& each) { return each.starts_with("output="); };
  const bool is_given = !options.train.out.empty() || std::ranges::any_of(options.overrides, is_output);
  return is_given ? options.train.out : run_of_config(options.config);
}

// An earlier version may have made the run whose own config is given.
Config config_given(const TrainArguments& options) {
  const bool is_of_run = !run_of_config(options.config).empty();
  return is_of_run ? load_run_config(options.config, options.overrides)
                   : load_config(options.config, options.overrides);
}

// A child that dies before it has looked at its folder is restarted with --resume, and would go on with a former run
// there. A config that cannot be read twice, or not in this folder, is left to the child.
void require_fresh(const TrainArguments& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.config, error)) return;
  const std::filesystem::path run = run_path(config_given(options), options.train);
  if (!std::filesystem::exists(run / kConfigFile, error)) return;
  { const RunLock another(run); }  // a training that is under way is told by its name
  require_no_run(run);
}

// The run is done, so a reader that has gone is no error.
void print_if_read(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0) return;
  if (errno != EPIPE) throw std::system_error(errno, std::generic_category());
  __fpurge(stdout);
  std::clearerr(stdout);
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train a model as a config file says");
  command->add_option("CONFIG", options->config, "config file (configs/README.md lists every key)")->required();
  add_overrides(*command, options->overrides, "override one key: --set optimizer.sparsity=0.99 (repeatable)");
  command
      ->add_option("--out", options->train.out, "run directory (default: the config's \"output\", or CONFIG's own run)")
      ->check(run_folder());
  CLI::Option* resume =
      command->add_flag("--resume", options->train.resume,
                        "go on from the newest good checkpoint in the run directory, or start where there is none");
  CLI::Option* restarts =
      command
          ->add_option("--max-restarts", options->max_restarts,
                       "run the training as a child, and again with --resume when it dies, so often at most")
          ->check(whole_number(0, 1000000));
  // A child that dies before it has removed the former run would be restarted with --resume, and would go on with that
  // former run.
  command->add_flag("--overwrite", options->train.overwrite, "take the place of the run that is in the run directory")
      ->excludes(resume, restarts);
  command->add_option("--launch", options->launcher, "start it in several processes: --launch \"mpirun -n 4\"")
      ->check(not_empty());
  command->add_flag("-q,--quiet", options->quiet, "show warnings, errors and the result alone; log.txt has it all");
  command->footer(
      "Examples:\n  dgc train configs/quickstart.json --set seed=2 --out runs/seed2\n"
      "  mpirun -n 4 dgc train configs/quickstart.json --set workers_per_rank=1\n\n"
      "Writes config.json, metrics.jsonl, log.txt, TensorBoard events and checkpoints into the run directory.\n"
      "Ctrl-C, SIGTERM and a closed terminal (SIGHUP) save a checkpoint first (exit code 130); --resume then goes on\n"
      "as if nothing had happened, and with a larger training.epochs beyond the end of a run.\n"
      "Where CONFIG is a run's own config.json, as in runs/seed2/config.json, the run directory is that run's, unless "
      "--out\nor --set output= names another one.\n"
      "mpirun kills its processes a second after Ctrl-C: send SIGUSR1 to mpirun to save.\n"
      "Ranks that torchrun, or srun without --mpi=pmix, has started on several machines need a secret:\n"
      "DGC_SECRET_FILE (docs/launch.md). They save into one run directory, on a file system that all machines share.\n"
      "--max-restarts 3 --launch \"mpirun -n 4\" starts four ranks, and starts them again when one dies.");
  command->callback([options] {
    ignore_broken_pipes();
    if (options->quiet) quiet_stderr();
    options->train.out = out_of(*options);
    if (options->max_restarts > 0 || !options->launcher.empty()) {
      require_no_launcher(
          "--max-restarts and --launch are for one process that starts all: dgc train CONFIG --max-restarts 3 --launch "
          "\"mpirun -n {}\"");
      if (options->max_restarts > 0 && !options->train.resume) require_fresh(*options);
      return supervise(supervised(*options));
    }
    restart_with_short_spins();
    const std::filesystem::path run = train([&] { return config_given(*options); }, options->train);
    if (run.empty()) return;
    try {
      print_if_read(final_table(read_groups({run})));
    } catch (const UserError& error) {  // the training itself has succeeded, and its checkpoints are saved
      spdlog::warn("there is no table of the result: {}", printable(error.what()));
    }
  });
}

}  // namespace dgc
