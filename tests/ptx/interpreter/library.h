#pragma once

#include <deque>
#include <filesystem>

#include "tests/ptx/interpreter/kernel_library.h"
#include "tests/ptx/interpreter/parser.h"

namespace dgc::ptx {

// The kernels of a folder of *.ptx files.
class Library final : public KernelLibrary {
 public:
  explicit Library(const std::filesystem::path& folder);

 private:
  std::deque<Module> modules_;
};

}  // namespace dgc::ptx
