#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace dgc::test {

// An empty folder for temporary files, whose path no other process has, wherever it runs.
inline std::filesystem::path new_folder(const std::string& name) {
  std::string path = (std::filesystem::temp_directory_path() / (name + ".XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make the folder " + path);
  // Some tests run the program as another user there.
  std::filesystem::permissions(path, std::filesystem::perms(0755));
  return path;
}

}  // namespace dgc::test
