#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/sass/kernel.h"

namespace dgc::ptx::sass {

// The kernels of a folder in which each NAME.cubin has beside it, in NAME.json, what nvdisasm -json prints of it. One
// is decoded when it is first asked for.
class Library {
 public:
  // Throws PtxError where there is no such file, or one is not what it should be.
  explicit Library(const std::filesystem::path& folder);

  std::vector<std::string> names() const;  // of all kernels, as kernel_of_type() gives them, in order
  // May be called from several threads. Throws PtxError where there is none, or it has an instruction that is not
  // known.
  const Kernel& kernel(const std::string& name);

 private:
  struct Entry {
    std::string file;
    Function function;
    Resources resources;
    std::optional<Kernel> kernel;
  };

  std::filesystem::path folder_;
  std::map<std::string, Entry> entries_;
  std::mutex mutex_;
};

}  // namespace dgc::ptx::sass
