#pragma once

#include <memory>
#include <string>

#include "config/options.h"
#include "kernels/backend.h"
#include "run/checkpoint.h"

// The file of `conv_plans`: {"gpu": "NVIDIA H200", "cudnn": "9.19.0", "convolutions": {text_of(): plan, ...}}.
// Checkpoints hold its checksum, because a run has other bits with other plans.
namespace dgc {

// A key of Manifest::values: conv_plans_xxh64() of the run that saved it.
inline constexpr const char* kConvPlans = "conv_plans_xxh64";

// Both throw UserError that names the file and, where there is one, the key. Without a file they return null and "".
std::shared_ptr<const ConvPlans> read_conv_plans(const Config&);
std::string conv_plans_xxh64(const Config&);

void write_conv_plans(const std::string& path, const ConvTimings&);  // the fastest ones; throws UserError

// Throws UserError unless the checkpoint was made with the same file, or both without. xxh64: of the config's file.
void require_same_conv_plans(const Checkpoint&, const Config&, const std::string& xxh64);

}  // namespace dgc
