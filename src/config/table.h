#pragma once

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "tensor/errors.h"

// Tables of what a "type" key can name, with one row for each name.
namespace dgc {

// Throws InternalError where there is no such row.
const auto& row_named(const std::ranges::forward_range auto& rows, const std::string& name) {
  const auto row = std::ranges::find_if(rows, [&](const auto& r) { return r.name == name; });
  DGC_CHECK(row != std::ranges::end(rows), "a type that its table does not have");
  return *row;
}

std::vector<std::string> names_of(const std::ranges::range auto& rows, const auto& wanted) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    if (wanted(row)) names.emplace_back(row.name);
  }
  return names;
}

std::vector<std::string> names_of(const std::ranges::range auto& rows) {
  return names_of(rows, [](const auto&) { return true; });
}

}  // namespace dgc
