#pragma once

#include <string>
#include <vector>

namespace dgc {

struct SuperviseOptions {
  std::vector<std::string> arguments;  // of dgc: "train", ...; "--resume" is added for a restart
  bool resume = false;                 // they have it already
  std::vector<std::string> launcher;   // words that come before dgc: "mpirun", "-n", "4"; empty: none
  int max_restarts = 0;
};

// How the supervised program ended, which has said itself why. Exit code 128 + the signal where a signal ended it.
struct SupervisedEnd {
  int exit_code = 0;
};

// Runs dgc, under its launcher, as a child, and again with --resume when it dies: of a signal, or with an exit code
// other than 0, 2 (what it was given is wrong) and 130 (interrupted, the state is saved). SIGINT, SIGTERM and SIGHUP
// are passed on, the first one as SIGUSR1 to mpirun, and nothing is restarted after them. A child whose supervisor dies
// gets SIGTERM. Throws SupervisedEnd unless the exit code is 0; UserError when the launcher is not there. To be called
// before this process has threads.
void supervise(const SuperviseOptions&);

}  // namespace dgc
