#include "config/config.h"

#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "commands/overrides.h"
#include "json/text.h"
#include "tensor/errors.h"

namespace dgc {

void add_config_command(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    bool schema = false, reference = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("config", "Check a config and print it with every default filled in");
  CLI::Option* const config = command->add_option("CONFIG", options->config, "config file");
  CLI::Option* const overrides =
      add_overrides(*command, options->overrides, "override one key: --set seed=2 (repeatable)");
  CLI::Option* const schema =
      command->add_flag("--schema", options->schema, "print the JSON Schema of config files, for editors")
          ->excludes(config)
          ->excludes(overrides);
  command->add_flag("--reference", options->reference, "print the list of all keys that configs/README.md holds")
      ->excludes(config)
      ->excludes(overrides)
      ->excludes(schema);
  command->footer(
      "Example:\n  dgc config configs/quickstart.json --set optimizer.sparsity=0.99\n"
      "  dgc config --schema > dgc.schema.json");
  command->callback([options] {
    if (options->schema) {
      fmt::print("{}", json_schema());
    } else if (options->reference) {
      fmt::print("{}", config_reference_markdown());
    } else if (options->config.empty()) {
      throw_user_error("dgc config: name a config file, or give --schema or --reference");
    } else {
      fmt::print("{}", printable_json(resolved_json(load_config(options->config, options->overrides))));
    }
  });
}

}  // namespace dgc
