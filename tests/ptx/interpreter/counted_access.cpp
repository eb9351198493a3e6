#include "tests/ptx/interpreter/counted_access.h"

#include <algorithm>

namespace dgc::ptx {
namespace {

constexpr uint64_t kSectorBytes = 32;

}  // namespace

// What is polled at a barrier for the whole grid depends on the order of blocks, and constants have a cache of their
// own.
CountedAccess::CountedAccess(const Warp& warp, const Instruction& i, Kind kind)
    : counts_(warp.block->waits_for_grid || i.space == Space::constant ? nullptr : warp.block->counts()), kind_(kind) {}

void CountedAccess::note(const Location& at, size_t bytes) {
  if (at.space != Space::global && at.space != Space::local) return;
  is_local_ = at.space == Space::local;
  bytes_ = bytes;
  sectors_[lanes_++] = at.address / kSectorBytes;  // an access is aligned to its size, so it lies in one sector
}

void CountedAccess::add() {
  if (is_local_) {
    ++counts_->local;
    return;
  }
  const auto end = sectors_.begin() + lanes_;
  std::sort(sectors_.begin(), end);
  const auto sectors = static_cast<uint64_t>(std::unique(sectors_.begin(), end) - sectors_.begin());
  const bool loads = kind_ == Kind::load;
  ++(loads ? counts_->loads : counts_->stores);
  if (bytes_ == 16) ++(loads ? counts_->loads_128 : counts_->stores_128);
  (loads ? counts_->loaded_bytes : counts_->stored_bytes) += lanes_ * bytes_;
  (loads ? counts_->loaded_sectors : counts_->stored_sectors) += sectors;
}

}  // namespace dgc::ptx
