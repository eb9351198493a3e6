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

// Runs dgc, under its launcher, as a child. When the child dies, it is started again with --resume, max_restarts times
// at most. Exit codes 0, 2 (what it was given is wrong), 127 (not started) and 130 (interrupted, the state is saved)
// are no death. Before a restart, what the launcher has left behind on this machine has ten seconds to end, and is then
// killed.
//
// The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is passed on to the child, and nothing is restarted after it. An mpirun
// gets SIGUSR1 instead, because after the others it kills its ranks before they have saved; so does an mpirun that
// "env" has become. Signals within kSameSignal of one that was passed on are ignored. The second is passed on as the
// first is, for ranks that were not there yet at the first; later ones as they are. A launcher that ends with 0 after a
// signal counts as 130. The training that one leaves on this machine may not have heard of the signal: it is told, and
// waited for until another signal comes, which is passed on too.
//
// When this process dies, the child gets SIGTERM; or SIGUSR1 where the launcher's first word is mpirun, or a link to
// it. What "env" will become is not known when that signal is chosen.
//
// Throws SupervisedEnd unless the exit code is 0, and UserError when the launcher is not there. To be called before
// this process has threads. Sets DGC_SUPERVISOR in the environment of this process, and makes it the parent of
// descendants whose own parent has ended.
void supervise(const SuperviseOptions&);

}  // namespace dgc
