#include "tools/report/report_csv.h"

#include <algorithm>
#include <optional>

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

void write_rows_csv(const std::vector<std::filesystem::path>& runs,
                    const std::function<void(const std::string& record)>& write) {
  std::vector<std::string> keys = {"kind", "step", "epoch"};
  std::vector<int64_t> rows;
  for (const std::filesystem::path& run : runs) {
    rows.push_back(0);
    JsonLineReader lines = open_rows(run);
    for (; const std::optional<Row> row = lines.next(); ++rows.back()) {
      for (const auto& [key, value] : row->fields()) {
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
      }
    }
  }
  std::string header = "run";
  for (const std::string& key : keys) header += "," + csv_field(key);
  write(header + "\n");
  for (size_t i = 0; i < runs.size(); ++i) {
    JsonLineReader lines = open_rows(runs[i]);
    for (int64_t n = 0; n < rows[i]; ++n) {  // what a training adds meanwhile may have other keys
      const std::optional<Row> row = lines.next();
      if (!row) break;
      std::string record = csv_field(runs[i].string());
      for (const std::string& key : keys) record += "," + csv_value(row->find(key));
      write(record + "\n");
    }
  }
}

}  // namespace dgc
