#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tensor/errors.h"

// Tables of what a "type" key can name, with one row for each name.
namespace dgc {

template <class Row>
const Row& row_named(const std::vector<Row>& rows, const std::string& name) {
  const auto row = std::ranges::find(rows, name, &Row::name);
  DGC_CHECK(row != rows.end(), "a type that its table does not have");
  return *row;
}

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows, const auto& wanted) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (wanted(row)) names.push_back(row.name);
  }
  return names;
}

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  return names_of(rows, [](const Row&) { return true; });
}

}  // namespace dgc
