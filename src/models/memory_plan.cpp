#include "models/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace dgc {

int MemoryPlan::add(size_t bytes, int first, int last) {
  blocks_.push_back({(bytes + 63) / 64 * 64, 0, first, last});
  return static_cast<int>(blocks_.size()) - 1;
}

void MemoryPlan::extend(int block, int last) {
  int& end = blocks_[static_cast<size_t>(block)].last;
  end = std::max(end, last);
}

void MemoryPlan::solve() {
  std::vector<size_t> order(blocks_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return blocks_[i].bytes; });

  std::vector<const Block*> placed;  // by offset
  for (const size_t i : order) {
    Block& block = blocks_[i];
    size_t at = 0;
    for (const Block* other : placed) {
      const bool together = other->first <= block.last && block.first <= other->last;
      if (!together) continue;
      if (at + block.bytes <= other->offset) break;
      at = std::max(at, other->offset + other->bytes);
    }
    block.offset = at;
    total_ = std::max(total_, at + block.bytes);
    placed.insert(std::ranges::upper_bound(placed, at, {}, [](const Block* b) { return b->offset; }), &block);
  }
}

}  // namespace dgc
