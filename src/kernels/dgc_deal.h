#pragma once

#include <cstdint>

#include "kernels/dgc_args.h"

// Split and reduce (docs/exchange.md), after Ok-Topk's (Li, Hoefler, PPoPP 2022): every worker owns a shard of the
// arena, adds up what all workers select there, and sends the largest sums to all.
namespace dgc {

// Which elements of an arena belong to which owner. Elements are dealt out in runs of 32, and every owner gets one run
// in each round. The order of the owners changes from round to round, so that no owner gets all rows or columns of a
// tensor.
struct DgcDeal {
  static constexpr int64_t kRun = 32;
  static constexpr uint32_t kEmpty = 0xffffffffu;

  int64_t extent = 0;  // number of elements that are dealt out, below 2^37: the number of a run has 32 bits
  int32_t owners = 1;
  int32_t room = 0;  // the most entries that one worker can send to one owner

  // `at` numbers an owner's elements in the arena's order. The last numbers may lie beyond the arena's end.
  struct Place {
    int32_t owner = 0;
    uint32_t at = 0;
  };
  constexpr int64_t shard() const { return (extent + kRun * owners - 1) / (kRun * owners) * kRun; }
  constexpr Place place(int64_t element) const {
    const auto run = static_cast<uint32_t>(element / kRun), all = static_cast<uint32_t>(owners);
    const uint32_t round = run / all, turned = run % all + turn(round);
    return {static_cast<int32_t>(turned < all ? turned : turned - all),
            round * static_cast<uint32_t>(kRun) + static_cast<uint32_t>(element % kRun)};
  }
  constexpr int64_t element(int32_t owner, int64_t at) const {
    const int64_t round = at / kRun;
    const int64_t run = round * owners + (owner + owners - static_cast<int32_t>(turn(round))) % owners;
    return run * kRun + at % kRun;
  }

  // The length, in 4-byte words, of the row that a worker sends to an owner. The row holds `room` places in the shard,
  // ascending and filled up with kEmpty, then `room` fp32 values, then padding up to a cache line.
  constexpr int64_t row() const { return (2 * int64_t{room} + 15) / 16 * 16; }

 private:
  constexpr uint32_t turn(int64_t round) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(round) * 0x9e3779b97f4a7c15u >> 33) %
           static_cast<uint32_t>(owners);
  }
};

// Deals out a worker's own canonical message, entry by entry in the arena's order. Where an owner has no more room, the
// value is added back to v. When control->skip is set, this op and all ops below change nothing.
struct DgcDealArgs {
  DgcTable table;
  DgcDeal deal;
  const StepControl* control = nullptr;
  const std::byte* message = nullptr;  // aligned to 16
  float* v = nullptr;                  // arena
  uint32_t* rows = nullptr;            // [owners][row()]
};

// Sums what all workers have sent to one owner: shard[at] = ((0 + x0) + x1) + ... in worker order. Places outside the
// shard are left out.
struct DgcSumDealtArgs {
  DgcDeal deal;
  const StepControl* control = nullptr;
  const uint32_t* rows = nullptr;  // worker 0's row
  int64_t stride = 0;              // words from one worker's row to the next
  int32_t workers = 0;
  float* shard = nullptr;  // [shard()], overwritten
};

// Checks the owners' messages as dgc_apply does. If all messages can be used, the op writes their values to their
// places in `sum`, which must be all zero before. `table` has one segment, the shard, and `workers` is the number of
// owners.
struct DgcUndealArgs : DgcApplyArgs {
  DgcDeal deal;
};

// Settles a worker's own entries when the sums have arrived. Where G is not zero, the entry has been sent, and u is set
// to zero. Elsewhere the entry has been dropped by its owner, or has cancelled out, and its value is added back to v.
// When control->fault is set, the op changes nothing.
struct DgcSettleArgs {
  DgcDeal deal;
  const StepControl* control = nullptr;
  const uint32_t* rows = nullptr;  // as dgc_deal made them
  const float* sum = nullptr;      // an arena with G
  float* u = nullptr;              // null: nothing to mask
  float* v = nullptr;
};

}  // namespace dgc
