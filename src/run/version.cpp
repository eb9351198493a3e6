#include "run/version.h"

#include <fmt/core.h>

#include "run/built_version.h"  // written by cmake/version.cmake
#include "run/manifest.h"
#include "tensor/wire_types.h"

namespace dgc {

std::string program_version() { return DGC_VERSION; }

std::string format_versions() { return fmt::format("messages {}, checkpoints {}", kWireVersion, Manifest::kVersion); }

}  // namespace dgc
