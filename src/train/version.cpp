#include "train/version.h"

#include <fmt/core.h>

#include "config/manifest.h"
#include "tensor/wire_types.h"

namespace dgc {

std::string program_version() { return DGC_VERSION " (" DGC_GIT_VERSION ")"; }

std::string format_versions() { return fmt::format("messages {}, checkpoints {}", kWireVersion, Manifest::kVersion); }

}  // namespace dgc
