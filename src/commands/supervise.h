#pragma once

#include <string>
#include <vector>

namespace dgc {

struct SuperviseOptions {
  std::vector<std::string> arguments;  // arguments of dgc: "train", ...; a restart adds "--resume" if it is not there
  std::vector<std::string> launcher;   // words that come before dgc: "mpirun", "-n", "4"; empty: none
  int max_restarts = 0;
};

// Thrown when the supervised program has ended with an exit code other than 0. The program has said why itself. The
// exit code is 128 + the signal where a signal ended the program.
struct SupervisedEnd {
  int exit_code = 0;
};

// Runs dgc, under its launcher, as a child, and again with --resume when the child dies: of a signal, or with an exit
// code other than 0, 2 (what it was given is wrong), 127 (not started) and 130 (interrupted, the state is saved). What
// a launcher leaves behind on this machine has ten seconds to end, and is killed then, before the next attempt.
// SIGINT, SIGTERM, SIGHUP and SIGUSR1 are passed on to the child, and nothing is restarted after them; mpirun gets the
// first of them as SIGUSR1, also where it runs in the place of the launcher's first word, as behind "env". One that
// follows within kSameSignal counts as the same one. The exit code 0 of a launcher that was stopped so counts as 130.
// A child whose supervisor dies gets SIGTERM; SIGUSR1 where the launcher's first word is mpirun, by its name or by that
// of the file that it links to, as what "env" will run is not known when this is set. Throws SupervisedEnd unless the
// exit code is 0, and UserError when the launcher is not there. To be called before this process has threads. It sets
// DGC_SUPERVISOR in its environment and becomes the parent of descendants that lose theirs.
void supervise(const SuperviseOptions&);

}  // namespace dgc
