#pragma once

#include <cstddef>
#include <vector>

namespace dgc {

// Packs blocks that live for known stretches of time into as little memory as a greedy first fit finds: the largest
// block first, each at the lowest offset that no block alive at the same time covers.
class MemoryPlan {
 public:
  // Adds a block that is alive at every time in [first, last]. Returns the block's number.
  int add(size_t bytes, int first, int last);
  void extend(int block, int last);  // keeps it alive at least until `last`

  void solve();                                                                          // once, after the last add
  size_t offset(int block) const { return blocks_[static_cast<size_t>(block)].offset; }  // a multiple of 64
  size_t bytes() const { return total_; }

 private:
  struct Block {
    size_t bytes, offset;
    int first, last;
  };
  std::vector<Block> blocks_;
  size_t total_ = 0;
};

}  // namespace dgc
