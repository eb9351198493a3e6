#include "optim/dgc/split_layout.h"

#include <algorithm>
#include <limits>

#include "tensor/errors.h"

namespace dgc {

SplitLayout make_split_layout(int64_t extent, int64_t entries, int64_t workers) {
  DGC_CHECK(workers >= 2 && extent >= 1, "a split needs someone to split with, and something to split");
  SplitLayout split;
  split.deal.extent = extent;
  split.deal.owners = static_cast<int32_t>(workers);
  const int64_t shard = split.deal.shard();
  if (shard >= int64_t{1} << 32) {
    throw_user_error(
        "exchange.algorithm split_reduce: each of {} workers would own {} elements, and a message can carry fewer than "
        "2^32; take more workers, or all_gather",
        workers, shard);
  }
  // An even deal gives every owner k / workers entries of each worker, and hardly ever more than twice as many.
  const int64_t most = std::min<int64_t>(shard, std::numeric_limits<int32_t>::max());
  split.deal.room = static_cast<int32_t>(std::clamp<int64_t>(2 * entries / workers, 1, most));
  const int64_t kept = std::clamp<int64_t>(entries / workers, 1, shard);
  split.kept = WireLayout({{.numel = shard, .k = kept}}, kCanonicalWire);
  return split;
}

}  // namespace dgc
