#include "run/safetensors_header.h"

#include <algorithm>

#include "json/text.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr const char* kMetadata = "__metadata__";

uint64_t unsigned_number(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned()) throw_user_error("{}: must be a whole number, not {}", where, value.dump());
  return value.get<uint64_t>();
}

// The bytes that shape and dtype imply; throws when the product does not fit in 63 bits.
uint64_t expected_bytes(const SafetensorsEntry& entry, const std::string& where) {
  uint64_t bytes = safetensors_dtype_size(entry.dtype);
  if (bytes == 0) throw_user_error("{}: unknown dtype \"{}\"", where, entry.dtype);
  for (const int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || bytes > INT64_MAX) {
      throw_user_error("{}: a shape too large to be true", where);
    }
  }
  return bytes;
}

SafetensorsEntry read_entry(const std::string& name, const Json& json, const std::string& where) {
  require_object(json, where);
  if (json.size() != 3) throw_user_error("{}: must have dtype, shape and data_offsets, and nothing else", where);
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = json_string(json, "dtype", where);
  const Json& shape = json_member(json, "shape", where);
  if (!shape.is_array()) throw_user_error("{}: shape must be a list", where);
  for (const Json& size : shape) {
    const uint64_t value = unsigned_number(size, where + ": shape");
    if (value > INT64_MAX) throw_user_error("{}: a shape too large to be true", where);
    entry.shape.push_back(static_cast<int64_t>(value));
  }
  const Json& offsets = json_member(json, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2) throw_user_error("{}: data_offsets must be two numbers", where);
  entry.begin = unsigned_number(offsets[0], where + ": data_offsets");
  entry.end = unsigned_number(offsets[1], where + ": data_offsets");
  const uint64_t bytes = expected_bytes(entry, where);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    throw_user_error("{}: data_offsets [{}, {}] do not hold the {} bytes of its shape", where, entry.begin, entry.end,
                     bytes);
  }
  return entry;
}

void read_metadata(const Json& json, const std::string& where, std::map<std::string, std::string>& out) {
  require_object(json, where);
  for (const auto& [key, value] : json.items()) out[key] = json_string(json, key.c_str(), where);
}

// In the order of the data, each entry must begin where the entry before it ended.
void check_tiling(const std::vector<SafetensorsEntry>& sorted, uint64_t data_bytes, const std::string& file) {
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : sorted) {
    if (entry.begin != at) {
      throw_user_error("{}: tensor {} begins at byte {}, where {} was due: tensors overlap or leave a gap", file,
                       entry.name, entry.begin, at);
    }
    at = entry.end;
  }
  if (at != data_bytes)
    throw_user_error("{}: its tensors end at byte {}, but {} bytes follow the header", file, at, data_bytes);
}

}  // namespace

uint64_t safetensors_dtype_size(const std::string& dtype) {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"I64", 8},     {"U64", 8}, {"F64", 8}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

std::string to_safetensors_header(const SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    DGC_CHECK(!json.contains(entry.name) && entry.name != kMetadata, "tensor name taken: " + entry.name);
    json[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    end = std::max(end, entry.end);
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  try {
    parse_safetensors_header(text, end, "safetensors header");
  } catch (const UserError& error) {
    throw InternalError(error.what());
  }
  return text;
}

SafetensorsHeader parse_safetensors_header(const std::string& text, uint64_t data_bytes, const std::string& file) {
  const Json json = parse_json(text, file + ": header");
  require_object(json, file + ": header");
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      read_metadata(value, fmt::format("{}: {}", file, kMetadata), header.metadata);
    } else {
      header.tensors.push_back(read_entry(name, value, fmt::format("{}: tensor {}", file, name)));
    }
  }
  // An empty tensor begins where its neighbour begins. Sorting by end too puts the empty one first.
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const auto& a, const auto& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  check_tiling(header.tensors, data_bytes, file);
  return header;
}

}  // namespace dgc
