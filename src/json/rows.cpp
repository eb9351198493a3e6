#include "json/rows.h"

#include <cmath>

#include "tensor/errors.h"

namespace dgc {
namespace {

Json value_to_json(const RowValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>)
          return std::isfinite(v) ? Json(v) : Json(nullptr);
        return Json(v);
      },
      value);
}

}  // namespace

Json row_to_json(const Row& row) {
  Json json = Json::object();
  for (const auto& [key, value] : row.fields()) json[key] = value_to_json(value);
  return json;
}

Row row_from_json(const Json& json, const std::string& where) {
  require_object(json, where);
  Row row;
  for (const auto& [key, value] : json.items()) {
    if (value.is_null()) {
      row.set(key, nullptr);
    } else if (value.is_boolean()) {
      row.set(key, value.get<bool>());
    } else if (value.is_string()) {
      row.set(key, value.get<std::string>());
    } else if (value.is_number_float() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX)) {
      row.set(key, value.get<double>());
    } else if (value.is_number()) {
      row.set(key, value.get<int64_t>());
    } else {
      throw_user_error("{}: {}: must be a number, string, boolean or null, not {}", where, key, json_type_name(value));
    }
  }
  return row;
}

}  // namespace dgc
