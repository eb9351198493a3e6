#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dgc {

// A line of an ARPA file: an n-gram.
struct ArpaEntry {
  std::vector<std::string> words;
  double log_probability = 0, log_backoff = 0;  // natural logarithms; the back-off is 0 where none is given
};

// Calls `entry` for each n-gram, shorter ones first, and returns the highest order. Throws UserError that names the
// file, and the line where one is wrong, for what does not follow the format, also when a section has another number of
// n-grams than \data\ promises.
int read_arpa(const std::string& path, const std::function<void(const ArpaEntry&)>& entry);

}  // namespace dgc
