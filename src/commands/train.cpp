#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "config/config.h"
#include "train/report.h"
#include "train/trainer.h"

namespace dgc {

void add_train_command(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    TrainOptions train;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("train", "Train a model as a config file says");
  command->add_option("CONFIG", options->config, "config file (configs/README.md lists every key)")->required();
  command->add_option("--set", options->overrides, "override one key: --set optimizer.sparsity=0.99 (repeatable)")
      ->take_all()
      ->expected(1);
  command->add_option("--out", options->train.out, "run directory (default: the config's \"output\")");
  command->add_flag("--resume", options->train.resume, "go on from the newest good checkpoint in the run directory");
  command->footer(
      "Example:\n  dgc train configs/quickstart.json --set seed=2 --out runs/seed2\n\n"
      "Writes config.json, metrics.jsonl, log.txt, TensorBoard events and checkpoints into the run directory.\n"
      "Ctrl-C saves a checkpoint first (exit code 130); --resume then goes on as if nothing had happened.");
  command->callback([options] {
    const Config config = load_config(options->config, options->overrides);
    const std::filesystem::path run = train(config, options->train);
    if (!run.empty()) fmt::print("{}", final_table({run}));
  });
}

}  // namespace dgc
