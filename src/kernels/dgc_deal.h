#pragma once

#include <cstdint>

#include "kernels/dgc_args.h"

// Split and reduce (docs/exchange.md), after Ok-Topk's (Li, Hoefler, PPoPP 2022): every worker owns a shard of the
// arena, adds up what all workers select there, and sends the largest sums to all.
namespace dgc {

// Which elements of an arena belong to which owner. They are dealt out in runs of 32, one to every owner in each round,
// in an order that turns from round to round: neither a tensor's rows nor its columns gather with one owner.
struct DgcDeal {
  static constexpr int64_t kRun = 32;
  static constexpr uint32_t kEmpty = 0xffffffffu;

  int64_t extent = 0;  // elements that are dealt
  int32_t owners = 1;
  int32_t room = 0;  // entries that one worker can send to one owner

  // An owner's elements are numbered in the arena's order; some of the last may lie beyond it.
  struct Place {
    int32_t owner = 0;
    uint32_t at = 0;
  };
  constexpr int64_t shard() const { return (extent + kRun * owners - 1) / (kRun * owners) * kRun; }
  constexpr Place place(int64_t element) const {
    const int64_t run = element / kRun, round = run / owners;
    return {static_cast<int32_t>((run % owners + turn(round)) % owners),
            static_cast<uint32_t>(round * kRun + element % kRun)};
  }
  constexpr int64_t element(int32_t owner, int64_t at) const {
    const int64_t round = at / kRun, run = round * owners + (owner + owners - turn(round)) % owners;
    return run * kRun + at % kRun;
  }

  // What a worker sends to an owner: a row of 4-byte words. First `room` places in the shard, ascending, kEmpty behind
  // the last; then as many fp32 values; the rest are padding up to a cache line.
  constexpr int64_t row() const { return (2 * int64_t{room} + 15) / 16 * 16; }

 private:
  constexpr int64_t turn(int64_t round) const {
    return static_cast<int64_t>(static_cast<uint64_t>(round) * 0x9e3779b97f4a7c15u >> 33) % owners;
  }
};

// Deals out a worker's own canonical message, entry by entry in the arena's order. An owner that has no more room
// leaves the value with the worker: v + value. With control->skip set nothing is touched, here and in all that follow.
struct DgcDealArgs {
  DgcTable table;
  DgcDeal deal;
  const StepControl* control = nullptr;
  const std::byte* message = nullptr;  // aligned to 16
  float* v = nullptr;                  // arena
  uint32_t* rows = nullptr;            // [owners][row()]
};

// What all workers have sent to one owner: shard[at] = ((0 + x0) + x1) + ... in worker order. Places outside the shard
// are left out.
struct DgcSumDealtArgs {
  DgcDeal deal;
  const StepControl* control = nullptr;
  const uint32_t* rows = nullptr;  // worker 0's row
  int64_t stride = 0;              // words from one worker's row to the next
  int32_t workers = 0;
  float* shard = nullptr;  // [shard()], overwritten
};

// Checks the owners' messages as dgc_apply does and, unless one cannot be used, puts their values where they belong in
// `sum`, which is all zero before. `table` has one segment, a shard; `workers` are the owners.
struct DgcUndealArgs : DgcApplyArgs {
  DgcDeal deal;
};

// A worker's own entries, once the sums are there: where G is not zero the entry has been sent, and momentum is masked
// there; elsewhere it has been dropped, or has cancelled out, and goes back: v + value. With control->fault set nothing
// is touched.
struct DgcSettleArgs {
  DgcDeal deal;
  const StepControl* control = nullptr;
  const uint32_t* rows = nullptr;  // as dgc_deal made them
  const float* sum = nullptr;      // an arena with G
  float* u = nullptr;              // null: nothing to mask
  float* v = nullptr;
};

}  // namespace dgc
