#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/keys.h"

namespace dgc {

// Where a value was written, so that a message can say so: the file, or the --set that put it there.
struct Origin {
  std::string file;
  std::vector<std::pair<std::string, std::string>> overrides = {};  // path, and the whole "path=value"

  // Throws UserError that names the origin and the path before the sentence.
  [[noreturn]] void refuse(const std::string& path, const std::string& sentence) const;
};

// Throws UserError unless `object` follows the table: no unknown key, none of another type, all values right and in
// range, nothing required missing. `shown` is the path of the object itself, "" for the root.
void check_object(const Keys& keys, const Json& object, const std::string& shown, const Origin& origin);

}  // namespace dgc
