#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dgc {

// Calls `body` for each file. What it throws of a single file is thrown. Of several, a file that is the user's error is
// named in the log and the others follow; a UserError behind the last one then says how many there were.
void for_each_file(const std::vector<std::string>& files, const std::function<void(const std::string& file)>& body);

}  // namespace dgc
