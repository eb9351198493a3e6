#include "tools/report/report_csv.h"

#include <algorithm>

#include "json/rows.h"
#include "tools/report/report_data.h"

namespace dgc {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_value(const RowValue* value) {
  if (value == nullptr || std::holds_alternative<std::nullptr_t>(*value)) return "";
  if (const auto* text = std::get_if<std::string>(value)) return csv_field(*text);
  return std::visit([](const auto& one) { return json_text(Json(one)); }, *value);
}

}  // namespace

std::string rows_csv(const std::vector<std::filesystem::path>& runs) {
  std::vector<std::string> keys = {"kind", "step", "epoch"};
  std::vector<std::vector<Row>> rows;
  for (const std::filesystem::path& run : runs) {
    rows.push_back(run_rows(run));
    for (const Row& row : rows.back()) {
      for (const auto& [key, value] : row.fields()) {
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
      }
    }
  }
  std::string out = "run";
  for (const std::string& key : keys) out += "," + csv_field(key);
  out += "\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const Row& row : rows[i]) {
      out += csv_field(runs[i].string());
      for (const std::string& key : keys) out += "," + csv_value(row.find(key));
      out += "\n";
    }
  }
  return out;
}

}  // namespace dgc
