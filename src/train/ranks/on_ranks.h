#pragma once

#include <functional>
#include <memory>

#include "config/options.h"
#include "dist/communicator.h"
#include "dist/launch/launch.h"
#include "kernels/backend.h"

namespace dgc {

// The communicator of the ranks before they have read anything: MPI where MPI has started them and is in this build,
// else a group of this process alone. Collective.
std::unique_ptr<Communicator> make_peers(
    const Launch&, WhileWaiting = [] {});

using RankBody = std::function<void(Backend&, Communicator&)>;

// Runs body once for each rank of this process, each in a thread that makes its own backend; a rank that is a process
// runs body in the calling thread. When one throws, the others are aborted, and the exception of the rank that failed
// first leaves on_ranks(). For ranks that are processes see train/ranks/failure.h.
void on_ranks(const Config&, const Launch&, Communicator& peers, const RankBody& body);
void on_ranks(const Config&, const Launch&, const RankBody& body);  // makes its own peers

}  // namespace dgc
