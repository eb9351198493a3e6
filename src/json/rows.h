#pragma once

#include "json/lines.h"
#include "json/text.h"

namespace dgc {

Json row_to_json(const Row& row);

// Throws UserError, starting with `where`, unless `json` is an object without lists or objects in it.
Row row_from_json(const Json& json, const std::string& where);

}  // namespace dgc
