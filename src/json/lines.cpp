#include "json/lines.h"

#include <algorithm>

#include "json/rows.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

template <class T>
std::optional<T> as(const RowValue* value) {
  const T* typed = value ? std::get_if<T>(value) : nullptr;
  return typed ? std::optional<T>(*typed) : std::nullopt;
}

// A cut object is never JSON: only its last byte closes it. A power cut leaves NULs, which end JSON for the parser.
bool is_torn(const std::string& line) {
  return line.find('\0') != std::string::npos || Json::parse(line, nullptr, false).is_discarded();
}

}  // namespace

Row& Row::set(const std::string& key, RowValue value) {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field.first == key; });
  if (at == fields_.end()) {
    fields_.emplace_back(key, std::move(value));
  } else {
    at->second = std::move(value);
  }
  return *this;
}

const RowValue* Row::find(const std::string& key) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field.first == key; });
  return at == fields_.end() ? nullptr : &at->second;
}

std::optional<int64_t> Row::integer(const std::string& key) const { return as<int64_t>(find(key)); }
std::optional<bool> Row::boolean(const std::string& key) const { return as<bool>(find(key)); }
std::optional<std::string> Row::text(const std::string& key) const { return as<std::string>(find(key)); }

std::optional<double> Row::number(const std::string& key) const {
  if (const auto whole = integer(key)) return static_cast<double>(*whole);
  return as<double>(find(key));
}

std::string to_json_line(const Row& row) { return json_text(row_to_json(row)); }

Row read_json_line(const std::string& line, const std::string& where) {
  return row_from_json(parse_json(line, where), where);
}

std::vector<Row> read_json_lines(const std::string& path) {
  constexpr size_t kMost = size_t{1} << 30;
  const std::string text = read_text_file(path, kMost);
  std::vector<Row> rows;
  for (size_t start = 0, number = 1; start < text.size(); ++number) {
    const size_t newline = text.find('\n', start);
    const std::string line = text.substr(start, newline - start);
    start = newline == std::string::npos ? text.size() : newline + 1;
    if (start == text.size() && is_torn(line)) break;
    rows.push_back(read_json_line(line, fmt::format("{}: line {}", path, number)));
  }
  return rows;
}

}  // namespace dgc
