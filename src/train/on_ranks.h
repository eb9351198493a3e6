#pragma once

#include <functional>
#include <memory>

#include "config/options.h"
#include "dist/communicator.h"
#include "dist/launch.h"
#include "kernels/backend.h"

namespace dgc {

// The config of a run that was started as `launch` says: with several processes, each process is a rank. The result
// depends on nothing that may differ between the processes. Throws UserError where config, launcher and this build do
// not fit together.
Config with_launch(Config, const Launch&);

// Throws UserError when this machine does not have the device, or the device cannot compute in the config's precision.
// Under a launcher "auto" is the GPU that this rank gets.
std::unique_ptr<Backend> make_backend(const Config&, const Launch& = {});
Fp32Math fp32_math(const Config&);

// The communicator of the ranks before they have read anything: MPI where MPI has started them and is in this build,
// else a group of this process alone. Collective.
std::unique_ptr<Communicator> make_peers(
    const Launch&, WhileWaiting = [] {});

using RankBody = std::function<void(Backend&, Communicator&)>;

// Runs body once for each rank of this process, each in a thread that makes its own backend. When one throws, the
// others are aborted, and the exception of the rank that failed first leaves on_ranks(). For ranks that are processes
// see train/failure.h.
void on_ranks(const Config&, const Launch&, Communicator& peers, const RankBody& body);
void on_ranks(const Config&, const Launch&, const RankBody& body);  // makes its own peers

}  // namespace dgc
