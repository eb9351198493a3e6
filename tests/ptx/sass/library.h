#pragma once

#include <filesystem>

#include "tests/ptx/interpreter/kernel_library.h"

namespace dgc::ptx::sass {

// The kernels of a folder in which each NAME.cubin has beside it, in NAME.json, what nvdisasm -json prints of it.
class Library final : public KernelLibrary {
 public:
  // Throws PtxError where there is no such file, or one is not what it should be.
  explicit Library(const std::filesystem::path& folder);
};

}  // namespace dgc::ptx::sass
