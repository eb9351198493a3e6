#include "tests/ptx/sass/library.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/names.h"

namespace dgc::ptx::sass {
namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw_ptx_error("{}: there is no such file", file.string());
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

Library::Library(const std::filesystem::path& folder) : folder_(folder) {
  if (!std::filesystem::is_directory(folder)) throw_ptx_error("{}: there is no such folder", folder.string());
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".cubin") continue;
    std::filesystem::path listing = file.path();
    listing.replace_extension(".json");
    std::map<std::string, Resources> resources = read_cubin(content_of(file.path()), file.path().filename().string());
    for (Function& function : parse_listing(content_of(listing), listing.filename().string())) {
      const auto found = resources.find(function.name);
      if (found == resources.end()) throw_ptx_error("{}: no kernel is called {}", file.path().string(), function.name);
      const std::string name = kernel_of_entry(function.name);
      entries_[name] = {file.path().filename().string(), std::move(function), std::move(found->second), {}};
    }
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
  if (!entry.kernel) entry.kernel = make_kernel(entry.file, entry.function, entry.resources);
  return *entry.kernel;
}

}  // namespace dgc::ptx::sass
