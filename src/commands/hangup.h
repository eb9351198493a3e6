#pragma once

namespace dgc {

// SIGHUP does again what it did when the program was started: it is ignored under nohup. Debian 13's MPI brings UCX,
// which takes the signal for itself while it is loaded. Call before anything depends on the signal.
void restore_hangup();

}  // namespace dgc
