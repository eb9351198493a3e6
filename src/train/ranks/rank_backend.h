#pragma once

#include <memory>
#include <string>

#include "config/options.h"
#include "dist/launch/launch.h"
#include "kernels/backend.h"

namespace dgc {

// Throws UserError when this machine does not have the device, or the device cannot compute in the config's precision.
// Under a launcher "auto" is the GPU that this rank gets, else the one that kGpuVariable names, or the first.
std::unique_ptr<Backend> make_backend(const Config&, const Launch& = {});
Fp32Math fp32_math(const Config&);

// The variable of the environment that names the GPU which the device "auto" is, by its number.
inline constexpr const char* kGpuVariable = "DGC_GPU";

// That number for training `place`, from 0, of several that run on this machine at once, each in a process of its own:
// one GPU after the other. Empty where the config names a device, or where there is no GPU.
std::string gpu_in_turn(const Config&, int place);
// Whether some of so many trainings at once share a GPU then.
bool share_gpus(const Config&, int trainings);

}  // namespace dgc
