#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dgc {

// Adds the option --set KEY=VALUE, which may be repeated and takes one value each time, so that no positional argument
// behind it is taken for one.
CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides, const std::string& description);

}  // namespace dgc
