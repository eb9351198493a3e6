#include "tests/ptx/interpreter/library.h"

#include <fstream>
#include <sstream>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/names.h"

namespace dgc::ptx {

Library::Library(const std::filesystem::path& folder) : folder_(folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".ptx") continue;
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const Module& module = modules_.emplace_back(file.path().filename().string(), text.str());
    for (const std::string& entry : module.entries()) entries_[kernel_of_entry(entry)] = {&module, entry, {}};
  }
}

std::vector<std::string> Library::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const Kernel& Library::kernel(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw_ptx_error("{}: no file has the kernel {}", folder_.string(), name);
  Entry& entry = found->second;
  if (!entry.kernel) entry.kernel = make_kernel(entry.module->parse(entry.name));
  return *entry.kernel;
}

}  // namespace dgc::ptx
