#include "tests/ptx/interpreter/kernel_library.h"

#include "tests/ptx/interpreter/error.h"

namespace dgc::ptx {

std::vector<std::string> KernelLibrary::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const Kernel& KernelLibrary::kernel(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw_ptx_error("{}: no file has the kernel {}", place_, name);
  Entry& entry = found->second;
  if (!entry.kernel) entry.kernel = entry.make();
  return *entry.kernel;
}

void KernelLibrary::add(const std::string& name, std::function<Kernel()> make) {
  entries_[name] = {std::move(make), {}};
}

}  // namespace dgc::ptx
