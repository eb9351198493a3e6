#include "tests/ptx/interpreter/library.h"

#include <fstream>
#include <sstream>

#include "tests/ptx/interpreter/names.h"

namespace dgc::ptx {

Library::Library(const std::filesystem::path& folder) : KernelLibrary(folder.string()) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".ptx") continue;
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const Module& module = modules_.emplace_back(file.path().filename().string(), text.str());
    for (const std::string& entry : module.entries()) {
      add(kernel_of_entry(entry), [&module, entry] { return make_kernel(module.parse(entry)); });
    }
  }
}

}  // namespace dgc::ptx
