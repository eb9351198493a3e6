#pragma once

#include <memory>

#include "config/options.h"
#include "dist/launch/launch.h"
#include "kernels/backend.h"

namespace dgc {

// Throws UserError when this machine does not have the device, or the device cannot compute in the config's precision.
// Under a launcher "auto" is the GPU that this rank gets.
std::unique_ptr<Backend> make_backend(const Config&, const Launch& = {});
Fp32Math fp32_math(const Config&);

}  // namespace dgc
