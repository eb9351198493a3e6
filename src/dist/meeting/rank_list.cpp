#include "dist/meeting/rank_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace dgc {

std::string rank_list(const std::set<int>& ranks) {
  constexpr size_t kNamed = 8;
  const auto end = std::next(ranks.begin(), static_cast<std::ptrdiff_t>(std::min(kNamed, ranks.size())));
  const std::string named = fmt::format("{}", fmt::join(ranks.begin(), end, ", "));
  return ranks.size() > kNamed ? fmt::format("{}, ... ({} in all)", named, ranks.size()) : named;
}

}  // namespace dgc
