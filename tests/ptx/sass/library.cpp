#include "tests/ptx/sass/library.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/names.h"
#include "tests/ptx/sass/kernel.h"

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

Library::Library(const std::filesystem::path& folder) : KernelLibrary(folder.string()) {
  if (!std::filesystem::is_directory(folder)) throw_ptx_error("{}: there is no such folder", folder.string());
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".cubin") continue;
    std::filesystem::path listing = file.path();
    listing.replace_extension(".json");
    std::map<std::string, Resources> resources = read_cubin(content_of(file.path()), file.path().filename().string());
    for (Function& function : parse_listing(content_of(listing), listing.filename().string())) {
      const auto found = resources.find(function.name);
      if (found == resources.end()) throw_ptx_error("{}: no kernel is called {}", file.path().string(), function.name);
      const std::string kernel = kernel_of_entry(function.name);  // before the function is moved
      add(kernel, [name = file.path().filename().string(), function = std::move(function), resources = found->second] {
        return make_kernel(name, function, resources);
      });
    }
  }
}

}  // namespace dgc::ptx::sass
