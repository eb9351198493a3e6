#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json/lines.h"

namespace dgc {

// All rows of a file, as JsonLineReader reads them.
inline std::vector<Row> read_json_lines(const std::string& path) {
  std::vector<Row> rows;
  JsonLineReader lines(path);
  while (std::optional<Row> row = lines.next()) rows.push_back(std::move(*row));
  return rows;
}

}  // namespace dgc
