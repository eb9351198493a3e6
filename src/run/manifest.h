#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/lines.h"

namespace dgc {

struct ManifestFile {
  std::string name;  // inside the checkpoint's folder: no slash
  uint64_t bytes = 0;
  std::string xxh64;  // hash of the whole file, 16 lower-case hex digits
  bool operator==(const ManifestFile&) const = default;
};

// What a checkpoint holds, and the checksums that tell whether it is whole.
struct Manifest {
  static constexpr int64_t kVersion = 1;

  int64_t step = 0;
  int64_t epoch = 0;
  Row values;  // named numbers and strings that a resumed run needs
  std::vector<ManifestFile> files;
  bool operator==(const Manifest&) const = default;
};

std::string to_manifest_json(const Manifest& manifest);

// Throws UserError, naming `file`, for anything that to_manifest_json would not have written.
Manifest parse_manifest(const std::string& text, const std::string& file);

}  // namespace dgc
