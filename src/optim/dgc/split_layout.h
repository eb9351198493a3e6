#pragma once

#include <cstdint>

#include "dist/wire.h"
#include "kernels/dgc_deal.h"

namespace dgc {

// What travels if every worker owns and adds up one shard (exchange.algorithm "split_reduce"). A worker selects k
// entries and sends each owner a row with room for 2 k / workers of them. Each owner sends the k / workers largest sums
// of its shard to all.
struct SplitLayout {
  DgcDeal deal;
  WireLayout kept;  // an owner's message: one tensor, its shard

  int64_t row_bytes() const { return 4 * deal.row(); }
  int64_t message_bytes() const { return static_cast<int64_t>(kept.message_bytes()); }
  // Bytes that one worker sends, a row to every owner and a message to all, each counted once; and bytes that the
  // worker receives from the others.
  int64_t sent_bytes() const { return deal.owners * row_bytes() + message_bytes(); }
  int64_t received_bytes() const { return (deal.owners - 1) * (row_bytes() + message_bytes()); }
};

// extent: elements of the arena that are dealt out; entries: k. workers: at least 2. Throws UserError where a shard is
// too large for a message.
SplitLayout make_split_layout(int64_t extent, int64_t entries, int64_t workers);

}  // namespace dgc
