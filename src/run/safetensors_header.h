#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// The JSON header of a safetensors file (https://github.com/huggingface/safetensors): 8 bytes of length, little-endian,
// then this text, then the tensors' bytes.
namespace dgc {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "I64", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
  bool operator==(const SafetensorsHeader&) const = default;
};

// Bytes of one element, 0 for a dtype the format does not know.
uint64_t safetensors_dtype_size(const std::string& dtype);

// The text of the header, padded with spaces to a multiple of 8 bytes, so that the data behind it is aligned. Throws
// InternalError where parse_safetensors_header would refuse the result.
std::string to_safetensors_header(const SafetensorsHeader& header);

// Entries come back in the order of their data. Throws UserError, naming `file`, unless the entries tile the data_bytes
// behind the header exactly: no overlap, no gap, sizes that match shape and dtype, no name twice.
SafetensorsHeader parse_safetensors_header(const std::string& text, uint64_t data_bytes, const std::string& file);

}  // namespace dgc
