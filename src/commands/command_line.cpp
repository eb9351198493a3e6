#include "commands/command_line.h"

#include <fmt/core.h>

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
    tell_for_all(usage.text);
    throw ToldError(usage);
  }
}

}  // namespace dgc
