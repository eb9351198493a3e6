#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "paths.h"

// The configs and the studies that come with the program.
namespace dgc::test {

inline std::vector<std::string> json_files_of(const std::filesystem::path& folder, bool studies) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool is_study = entry.path().parent_path().filename() == "studies";
    if (entry.path().extension() == ".json" && is_study == studies) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

inline std::vector<std::string> shipped_configs() { return json_files_of(DGC_SOURCE_DIR "/configs", false); }
inline std::vector<std::string> shipped_studies() { return json_files_of(DGC_SOURCE_DIR "/configs", true); }

}  // namespace dgc::test
