#pragma once

#include <functional>
#include <memory>

#include "config/options.h"
#include "dist/communicator.h"
#include "dist/launch.h"
#include "kernels/backend.h"

namespace dgc {

// The config of a run that was started as `launch` says: with several processes the ranks are theirs, and an "auto"
// communicator is NCCL's. Throws UserError where the config asks for something else.
Config with_launch(Config, const Launch&);

// Throws UserError when the device is not here, or cannot compute in the config's precision. Under a launcher "auto" is
// the GPU that this rank gets.
std::unique_ptr<Backend> make_backend(const Config&, const Launch& = {});

// Runs body once for each rank of this process, each in a thread that makes its own backend. When one throws, the
// others are aborted, and the exception of the rank that failed first leaves this function.
void on_ranks(const Config&, const Launch&, const std::function<void(Backend&, Communicator&)>& body);

}  // namespace dgc
