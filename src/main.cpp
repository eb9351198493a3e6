#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "commands/app.h"
#include "commands/hangup.h"
#include "commands/standard_output.h"
#include "commands/supervise.h"
#include "commands/usage_error.h"
#include "run/log.h"
#include "train/failure.h"
#include "train/interrupt.h"

namespace {

enum ExitCode { kSuccess = 0, kOurError = 1, kUserError = 2, kInterrupted = 130 };

int run(int argc, char** argv) {
  const std::unique_ptr<CLI::App> app = dgc::make_app();
  try {
    dgc::print_all([&] { app->parse(argc, argv); });
    return kSuccess;
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    const int code = app->exit(help, text);
    dgc::print_all([&] { fmt::print("{}", text.str()); });
    return code;
  } catch (const CLI::ParseError& error) {
    if (dgc::tells_for_all()) {
      spdlog::error("{}", dgc::usage_error(*app, error));
    } else {
      // A launcher ends all processes when the first one fails, and rank 0 must have reported the error by then.
      std::this_thread::sleep_for(std::chrono::seconds(5));
    }
    return kUserError;
  }
}

}  // namespace

int main(int argc, char** argv) {
  dgc::restore_hangup();
  dgc::fill_closed_streams();
  dgc::log_to_stderr();
  try {
    return run(argc, argv);
  } catch (const dgc::Interrupted&) {
    return kInterrupted;
  } catch (const dgc::SupervisedEnd& end) {
    return end.exit_code;
  } catch (const dgc::ToldError& error) {
    return error.users ? kUserError : kOurError;
  } catch (const std::exception& error) {
    const dgc::Complaint complaint = dgc::complaint(error);
    spdlog::error("{}", complaint.text);
    return complaint.users ? kUserError : kOurError;
  }
}
