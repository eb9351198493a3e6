#pragma once

#include <functional>
#include <memory>

#include "config/options.h"
#include "dist/communicator.h"
#include "dist/launch.h"
#include "kernels/backend.h"

namespace dgc {

// The config of a run that was started as `launch` says: with several processes the ranks are theirs. Looks at nothing
// that may differ between them. Throws UserError where config, launcher and this build do not fit together.
Config with_launch(Config, const Launch&);

// Throws UserError when the device is not here, or cannot compute in the config's precision. Under a launcher "auto" is
// the GPU that this rank gets.
std::unique_ptr<Backend> make_backend(const Config&, const Launch& = {});

// Through which the ranks talk before they have read anything: MPI where it has started them, and is in this build.
// Else this process is a group of its own. Collective.
std::unique_ptr<Communicator> make_peers(
    const Launch&, WhileWaiting = [] {});

using RankBody = std::function<void(Backend&, Communicator&)>;

// Runs body once for each rank of this process, each in a thread that makes its own backend. When one throws, the
// others are aborted, and the exception of the rank that failed first leaves this function (train/failure.h for those
// that are processes).
void on_ranks(const Config&, const Launch&, Communicator& peers, const RankBody& body);
void on_ranks(const Config&, const Launch&, const RankBody& body);  // with peers of its own

}  // namespace dgc
