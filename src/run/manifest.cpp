#include "run/manifest.h"

#include <set>

#include "json/rows.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

int64_t count(const Json& object, const char* name, const std::string& where) {
  const Json& value = json_member(object, name, where);
  const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
  if (!fits) throw_user_error("{}: {} must be a whole number, not {}", where, name, json_type_name(value));
  return value.get<int64_t>();
}

void check_members(const Json& object, size_t expected, const std::string& where) {
  require_object(object, where);
  if (object.size() > expected) throw_user_error("{}: has a key that this version does not know", where);
}

// A name that leads out of the folder would let a checkpoint read any file.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

bool is_xxh64(const std::string& hex) {
  return hex.size() == 16 && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

ManifestFile read_file_entry(const Json& json, const std::string& where) {
  check_members(json, 3, where);
  ManifestFile file;
  file.name = json_string(json, "name", where);
  file.bytes = static_cast<uint64_t>(count(json, "bytes", where));
  file.xxh64 = json_string(json, "xxh64", where);
  if (!is_plain_name(file.name)) throw_user_error("{}: name must be a plain file name", where);
  if (!is_xxh64(file.xxh64)) throw_user_error("{}: xxh64 must be 16 lower-case hex digits", where);
  return file;
}

}  // namespace

std::string to_manifest_json(const Manifest& manifest) {
  Json json = {{"version", Manifest::kVersion}, {"step", manifest.step}, {"epoch", manifest.epoch}};
  json["values"] = row_to_json(manifest.values);
  json["files"] = Json::array();
  for (const ManifestFile& file : manifest.files) {
    DGC_CHECK(is_plain_name(file.name) && is_xxh64(file.xxh64), "manifest entry " + file.name);
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh64", file.xxh64}});
  }
  return json_text(json, 2) + "\n";
}

Manifest parse_manifest(const std::string& json_source, const std::string& file) {
  const Json json = parse_json(json_source, file);
  require_object(json, file);
  // The version is checked first, because another version may have other keys.
  const int64_t version = count(json, "version", file);
  if (version != Manifest::kVersion) {
    throw_user_error("{}: checkpoint format {}, but this program reads format {}", file, version, Manifest::kVersion);
  }
  check_members(json, 5, file);
  Manifest manifest;
  manifest.step = count(json, "step", file);
  manifest.epoch = count(json, "epoch", file);
  manifest.values = row_from_json(json_member(json, "values", file), file + ": values");
  const Json& files = json_member(json, "files", file);
  if (!files.is_array()) throw_user_error("{}: files must be a list, not {}", file, json_type_name(files));
  std::set<std::string> names;
  for (size_t i = 0; i < files.size(); ++i) {
    manifest.files.push_back(read_file_entry(files[i], fmt::format("{}: files[{}]", file, i)));
    const std::string& name = manifest.files.back().name;
    if (!names.insert(name).second) throw_user_error("{}: {} is listed twice", file, name);
  }
  return manifest;
}

}  // namespace dgc
