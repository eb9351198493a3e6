#pragma once

namespace dgc {

// Gives SIGHUP the action back that it had when the program was started: under nohup it is ignored. Debian 13's MPI
// brings UCX, which takes the signal for itself while UCX is loaded. To be called before anything depends on the
// signal.
void restore_hangup();

}  // namespace dgc
