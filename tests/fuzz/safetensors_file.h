#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace dgc::fuzz {

// A file of a header's text, up to the first newline, and of the data behind it, with the header's length in front of
// both, which random bytes would hardly ever hit.
inline std::string safetensors_file(const std::string& input) {
  const size_t newline = std::min(input.find('\n'), input.size());
  std::string file(sizeof(uint64_t), '\0');
  const uint64_t length = newline;
  std::memcpy(file.data(), &length, sizeof(length));
  return file + input.substr(0, newline) + input.substr(std::min(newline + 1, input.size()));
}

}  // namespace dgc::fuzz
