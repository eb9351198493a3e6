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

void require_run_class_names(const std::filesystem::path& run, const std::vector<std::string>& names) {
  const std::vector<std::string> there = run_class_names(run);
  const auto [was, is] = std::ranges::mismatch(there, names);
  if (there.empty() || names.empty() || (was == there.end() && is == names.end())) return;
  const auto shown = [](const std::vector<std::string>& all, auto name) {
    return name == all.end() ? std::string("nothing") : "\"" + *name + "\"";
  };
  throw_user_error(
      "{}: this run's classes are other ones: class {} is {} there, and {} now; resume with the data that it began "
      "with",
      (run / kClassNamesFile).string(), was - there.begin(), shown(there, was), shown(names, is));
}

}  // namespace dgc
