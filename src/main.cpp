#include <spdlog/spdlog.h>

#include <csignal>

#include "commands/command_line.h"
#include "commands/hangup.h"
#include "commands/standard_output.h"
#include "commands/supervise.h"
#include "run/log.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"

int main(int argc, char** argv) {
  dgc::restore_hangup();
  dgc::fill_closed_streams();
  dgc::log_to_stderr();
  dgc::heed_signals_as_first_process();
  std::signal(SIGXFSZ, SIG_IGN);  // write() fails at the limit of a file (ulimit -f), as on a full disk
  try {
    dgc::run_command_line(argc, argv);
    return dgc::kSuccess;
  } catch (const dgc::Interrupted&) {
    return dgc::kInterrupted;
  } catch (const dgc::SupervisedEnd& end) {
    return end.exit_code;
  } catch (const dgc::ToldError& error) {
    return error.users ? dgc::kUserError : dgc::kOurError;
  } catch (const std::exception& error) {
    const dgc::Complaint complaint = dgc::complaint(error);
    spdlog::error("{}", complaint.text);
    return complaint.users ? dgc::kUserError : dgc::kOurError;
  }
}
