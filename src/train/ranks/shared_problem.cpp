#include "train/ranks/shared_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace dgc {

std::vector<std::string> told_by_all(Communicator& communicator, Device& device, const std::string& mine) {
  const uint64_t size = mine.size();
  const std::vector<uint64_t> sizes = gather_host<uint64_t>(communicator, device, {&size, 1});
  const size_t longest = *std::ranges::max_element(sizes);
  std::vector<std::string> texts(sizes.size());
  if (longest == 0) return texts;
  std::string padded = mine;
  padded.resize(longest);
  const std::vector<char> all = gather_host<char>(communicator, device, padded);
  for (size_t rank = 0; rank < texts.size(); ++rank) texts[rank].assign(&all[rank * longest], sizes[rank]);
  return texts;
}

std::vector<std::vector<std::string>> told_by_all(Communicator& communicator, Device& device,
                                                  const std::vector<std::string>& mine) {
  std::string joined;
  for (const std::string& text : mine) joined += text + '\0';
  std::vector<std::vector<std::string>> lists;
  for (const std::string& all : told_by_all(communicator, device, joined)) {
    std::vector<std::string>& list = lists.emplace_back();
    for (size_t at = 0, end = 0; (end = all.find('\0', at)) != std::string::npos; at = end + 1) {
      list.push_back(all.substr(at, end - at));
    }
  }
  return lists;
}

std::string shared_problem(Communicator& communicator, Device& device, const std::string& own) {
  const std::vector<std::string> all = told_by_all(communicator, device, own);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) return all.size() == 1 ? all[rank] : fmt::format("rank {}: {}", rank, all[rank]);
  }
  return "";
}

}  // namespace dgc
