#include "commands/command_line.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "commands/app.h"
#include "commands/standard_output.h"
#include "commands/usage_error.h"
#include "train/ranks/failure.h"

namespace dgc {

void run_command_line(int argc, char** argv) {
  const std::unique_ptr<CLI::App> app = make_app();
  try {
    print_all([&] { app->parse(argc, argv); });
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    app->exit(help, text);
    print_all([&] { fmt::print("{}", text.str()); });
  } catch (const CLI::ParseError& error) {
    const Complaint usage{usage_error(*app, error), true};
    // A launcher ends all processes when the first one fails, and rank 0 must have reported the error by then. Where
    // the launcher ends none meanwhile, rank 0 was given other arguments, and this process is the one that has an
    // error.
    if (tells_for_all() || !give_head_start(std::chrono::seconds(5))) spdlog::error("{}", usage.text);
    throw ToldError(usage);
  }
}

}  // namespace dgc
