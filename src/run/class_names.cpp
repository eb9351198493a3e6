#include "run/class_names.h"

#include <algorithm>

#include "json/text.h"
#include "run/file_io.h"
#include "tensor/errors.h"

namespace dgc {

void save_class_names(const std::filesystem::path& run, const std::vector<std::string>& names) {
  if (!names.empty()) write_if_changed(run / kClassNamesFile, json_text(Json(names)) + "\n");
}

std::vector<std::string> run_class_names(const std::filesystem::path& run) {
  constexpr size_t kMostBytes = size_t{1} << 28;
  const std::filesystem::path path = run / kClassNamesFile;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const Json names = parse_json(read_text_file(path.string(), kMostBytes), path.string());
  if (!names.is_array() || !std::ranges::all_of(names, [](const Json& name) { return name.is_string(); })) {
    throw_user_error("{}: not a list of names; remove it to see the classes' numbers", path.string());
  }
  return names.get<std::vector<std::string>>();
}

}  // namespace dgc
