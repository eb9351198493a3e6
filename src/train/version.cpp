#include "train/version.h"

#include <fmt/core.h>

#include "config/manifest.h"
#include "tensor/wire_types.h"
#include "train/built_version.h"  // written by cmake/version.cmake

namespace dgc {

std::string program_version() { return DGC_VERSION; }

std::string format_versions() { return fmt::format("messages {}, checkpoints {}", kWireVersion, Manifest::kVersion); }

}  // namespace dgc
