#include "train/ranks/shared_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace dgc {

std::string shared_problem(Communicator& communicator, Device& device, const std::string& own) {
  using Said = std::array<char, 512>;  // room for a path and a sentence; a longer text is cut
  Said mine{};
  std::ranges::copy_n(own.begin(), static_cast<std::ptrdiff_t>(std::min(own.size(), mine.size() - 1)), mine.begin());
  std::vector<Said> all(static_cast<size_t>(communicator.size()));
  all_gather_host(communicator, device, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const std::string said = all[rank].data();
    if (!said.empty()) return all.size() == 1 ? said : fmt::format("rank {}: {}", rank, said);
  }
  return "";
}

}  // namespace dgc
