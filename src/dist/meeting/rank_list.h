#pragma once

#include <set>
#include <string>

namespace dgc {

// "2, 3", or of more than eight the first and how many there are: "2, 3, 4, 5, 6, 7, 8, 9, ... (1022 in all)".
std::string rank_list(const std::set<int>& ranks);

}  // namespace dgc
