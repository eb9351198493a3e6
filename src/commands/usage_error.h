#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dgc {

// One sentence: what is wrong with the command line that `app` could not parse, and which help tells more.
std::string usage_error(CLI::App& app, const CLI::ParseError& error);

}  // namespace dgc
