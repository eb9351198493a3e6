#include <spdlog/spdlog.h>

#include "commands/commands.h"
#include "commands/short_spins.h"
#include "commands/supervise.h"
#include "commands/usage_error.h"
#include "train/failure.h"
#include "train/interrupt.h"
#include "train/log.h"

namespace {

enum ExitCode { kSuccess = 0, kOurError = 1, kUserError = 2, kInterrupted = 130 };

int run(int argc, char** argv) {
  CLI::App app(
      "dgc: trains neural networks from JSON configs and exchanges 0.1 % of the gradient (Deep Gradient Compression)",
      "dgc");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  dgc train configs/quickstart.json\n  dgc report runs/quickstart -o report.html\n\n"
      "dgc COMMAND --help tells more. Exit codes: 0 done, 1 an error of this program, 2 an error in what it was "
      "given,\n"
      "130 interrupted after the state was saved.");
  dgc::add_train_command(app);
  dgc::add_eval_command(app);
  dgc::add_generate_command(app);
  dgc::add_transcribe_command(app);
  dgc::add_plan_command(app);
  dgc::add_bench_command(app);
  dgc::add_report_command(app);
  dgc::add_config_command(app);
  dgc::add_info_command(app);
  try {
    app.parse(argc, argv);
    return kSuccess;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    if (dgc::tells_for_all()) spdlog::error("{}", dgc::usage_error(app, error));
    return kUserError;
  }
}

}  // namespace

int main(int argc, char** argv) {
  dgc::restart_with_short_spins(argv);
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
