#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace dgc {

// The whole command line: what main() parses, and what the man page and the shells' completion are made from.
std::unique_ptr<CLI::App> make_app();

struct Command {
  std::string name;  // all of its words: "dgc bench train"
  const CLI::App* app = nullptr;
};

// `app` itself, then its subcommands, each before its own subcommands.
std::vector<Command> commands_of(const CLI::App& app);

}  // namespace dgc
