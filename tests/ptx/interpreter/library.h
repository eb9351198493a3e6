#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/interpreter/kernel.h"
#include "tests/ptx/interpreter/parser.h"

namespace dgc::ptx {

// The kernels of a folder of *.ptx files. One is parsed when it is first asked for.
class Library {
 public:
  explicit Library(const std::filesystem::path& folder);

  std::vector<std::string> names() const;  // of all kernels, as kernel_of_type() gives them, in order
  // May be called from several threads. Throws PtxError where there is none, or it has an instruction that is not
  // known.
  const Kernel& kernel(const std::string& name);

 private:
  struct Entry {
    const Module* module;
    std::string name;
    std::optional<Kernel> kernel;
  };
  std::filesystem::path folder_;
  std::deque<Module> modules_;
  std::map<std::string, Entry> entries_;
  std::mutex mutex_;
};

}  // namespace dgc::ptx
