#pragma once

#include <memory>
#include <string>

#include "config/options.h"
#include "dist/launch/launch.h"
#include "kernels/backend.h"

namespace dgc {

// Throws UserError when this machine does not have the device, or the device cannot compute in the config's precision.
// Under a launcher "auto" is the GPU that this rank gets.
std::unique_ptr<Backend> make_backend(const Config&, const Launch& = {});
Fp32Math fp32_math(const Config&);

// The device of training `place`, from 0, of several that run on this machine at once, each in a process of its own:
// one GPU after the other where the config says "auto" and there are any, else what the config says.
std::string device_in_turn(const Config&, int place);

}  // namespace dgc
