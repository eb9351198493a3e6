#pragma once

#include <functional>
#include <string>

namespace dgc {

// Calls `line` for every line of a text file (also a gzip file) without its line break, where = "PATH: line N". Throws
// UserError with `fix` when there is no such file.
void for_each_line(const std::string& path, const std::string& fix,
                   const std::function<void(const std::string& line, const std::string& where)>& line);

}  // namespace dgc
