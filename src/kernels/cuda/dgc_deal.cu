// Split and reduce (kernels/dgc_deal.h). Each kernel touches only what is sent, except that dgc_sum_dealt also writes 4
// bytes per element of a shard. Sums run in worker order and without atomics, so they have the CPU's bits.
#include <algorithm>

#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/dgc_sums.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/dgc_deal.h"

namespace dgc::cuda {

// The position of the first of n ascending numbers that is at least `wanted`, or, with `above`, greater than `wanted`.
__device__ inline unsigned lower_bound(const unsigned* numbers, unsigned n, unsigned wanted, bool above = false) {
  unsigned low = 0, high = n;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (numbers[middle] < wanted || (above && numbers[middle] == wanted)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// There is one block for each owner. It reads the whole message, so it takes the entries in their order and needs no
// other block.
struct DgcDealOut {
  static constexpr const char* kName = "dgc_deal";
  static constexpr int kBlock = 1024, kEach = 4;  // kEach: entries of a thread at a time, one behind another
  using Args = DgcDealArgs;
  struct Shared {
    unsigned warp_sums[kBlock / 32];
  };

  __device__ static void run(const Args& a, Shared& shared) {
    if (a.control->skip != 0) return;
    const auto owner = static_cast<int32_t>(blockIdx.x);
    const auto room = static_cast<unsigned>(a.deal.room);
    uint32_t* const row = a.rows + owner * a.deal.row();
    const std::byte* const payload = a.message + kWireHeaderBytes;
    unsigned used = 0;
    for (int32_t segment = 0; segment < a.table.count; ++segment) {
      const DgcSegment& s = a.table.segments[segment];
      const auto* ends = reinterpret_cast<const unsigned*>(payload + s.block_ends_at);
      const auto* offsets = reinterpret_cast<const uint16_t*>(payload + s.offsets_at);
      const auto* values = reinterpret_cast<const float*>(payload + s.values_at);
      const auto k = static_cast<unsigned>(s.k);
      for (unsigned begin = 0; begin < k; begin += kBlock * kEach) {
        const unsigned first = begin + threadIdx.x * kEach;
        unsigned block = first < k ? lower_bound(ends, static_cast<unsigned>(s.blocks()), first, true) : 0;
        int64_t element[kEach];
        DgcDeal::Place place[kEach];
        unsigned mine = 0;  // a bit for each entry
#pragma unroll
        for (unsigned j = 0; j < kEach; ++j) {
          if (first + j >= k) continue;
          while (ends[block] <= first + j) ++block;
          element[j] = s.offset + block * kDgcBlock + offsets[first + j];
          place[j] = a.deal.place(element[j]);
          if (place[j].owner == owner) mine |= 1u << j;
        }
        const DgcScan scan = block_scan(static_cast<unsigned>(__popc(mine)), shared);
        unsigned slot = used + scan.before;
#pragma unroll
        for (unsigned j = 0; j < kEach; ++j) {
          if ((mine >> j & 1u) == 0) continue;
          const float value = values[first + j];
          if (slot < room) {
            row[slot] = place[j].at;
            row[room + slot] = __float_as_uint(value);
          } else {
            a.v[element[j]] += value;
          }
          ++slot;
        }
        used += scan.total;
      }
    }
    for (unsigned slot = used + threadIdx.x; slot < room; slot += kBlock) {
      row[slot] = DgcDeal::kEmpty;
      row[room + slot] = 0;
    }
  }
};

// A block has a stretch of the shard to itself, and sums it up in shared memory. Each worker's entries are in ascending
// order, so those of the stretch are found by binary searches, which the threads do for many workers at once.
struct DgcSumDealt {
  static constexpr const char* kName = "dgc_sum_dealt";
  static constexpr int kBlock = kDgcThreads;
  static constexpr int kStretch = 4096, kWorkersAtOnce = kDgcThreads / 2;
  using Args = DgcSumDealtArgs;
  struct Shared {
    unsigned bounds[2][kWorkersAtOnce];  // where a worker's entries of the stretch begin, and where they end
    float sums[kStretch];
  };

  struct Sums {
    float* sums;
    __device__ void add(unsigned at, float value) const { sums[at] += value; }
  };

  __device__ static void run(const Args& a, Shared& shared) {
    if (a.control->skip != 0) return;
    const int64_t first = blockIdx.x * int64_t{kStretch};
    const auto begin = static_cast<unsigned>(first), room = static_cast<unsigned>(a.deal.room);
    const auto size = static_cast<unsigned>(smaller(kStretch, a.deal.shard() - first));
    for (unsigned i = threadIdx.x; i < kStretch; i += kDgcThreads) shared.sums[i] = 0;
    for (int from = 0; from < a.workers; from += kWorkersAtOnce) {
      const auto some = static_cast<int>(smaller(a.workers - from, kWorkersAtOnce));
      const unsigned which = threadIdx.x / kWorkersAtOnce, mine = threadIdx.x % kWorkersAtOnce;
      if (static_cast<int>(mine) < some) {
        shared.bounds[which][mine] =
            lower_bound(a.rows + (from + static_cast<int>(mine)) * a.stride, room, begin + which * size);
      }
      __syncthreads();
      add_in_turn(some, Sums{shared.sums}, [&](int worker, unsigned number) {
        DgcEntry e{DgcEntry::kNone, 0};
        const unsigned i = shared.bounds[0][worker] + number;
        if (i >= shared.bounds[1][worker]) return e;
        const uint32_t* const row = a.rows + (from + worker) * a.stride;
        const unsigned at = row[i] - begin;
        if (at >= size) return e;  // a row that is not in order may say anything
        return DgcEntry{at, __uint_as_float(row[room + i])};
      });
    }
    for (unsigned i = threadIdx.x; i < size; i += kDgcThreads) a.shard[first + i] = shared.sums[i];
  }
};

struct DgcUndeal {
  static constexpr const char* kName = "dgc_undeal";
  static constexpr int kBlock = kDgcThreads, kBlocksAtOnce = 4;
  struct Args {
    DgcUndealArgs a;
    DgcApplyScratch scratch;
  };
  using Shared = DgcCheckShared;

  __device__ static void run(const Args& args, Shared& shared) {
    use_if_sound(args.a, args.scratch, shared, [&] { put(args.a); });
  }

  __device__ static void put(const DgcUndealArgs& a) {
    const DgcSegment& s = a.table.segments[0];
    for (int64_t i = blockIdx.x; i < a.table.blocks * a.workers; i += gridDim.x) {
      const auto owner = static_cast<int>(i / a.table.blocks);
      const int64_t block = i % a.table.blocks;
      const DgcEntries e(DgcMessages{a}.payload(owner), s, block);
      for (unsigned at = e.begin + threadIdx.x; at < e.end; at += kDgcThreads) {
        const int64_t element = a.deal.element(owner, block * kDgcBlock + e.offsets[at]);
        if (element < a.deal.extent) a.sum[element] = e.values[at];
      }
    }
  }
};

struct DgcSettle {
  static constexpr const char* kName = "dgc_settle";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcSettleArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    if (a.control->skip != 0 || a.control->fault.kind != WireFaultKind::none) return;
    const int64_t slot = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (slot >= int64_t{a.deal.owners} * a.deal.room) return;
    const auto owner = static_cast<int32_t>(slot / a.deal.room);
    const uint32_t* const row = a.rows + owner * a.deal.row();
    const int64_t i = slot % a.deal.room;
    if (row[i] == DgcDeal::kEmpty) return;
    const int64_t element = a.deal.element(owner, row[i]);
    if (a.sum[element] == 0) {
      a.v[element] += __uint_as_float(row[a.deal.room + i]);
    } else if (a.u != nullptr) {
      a.u[element] = 0;
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_deal(const DgcDealArgs& args) { Queue(*this).run<DgcDealOut>(args.deal.owners, args); }

void KernelBackend::dgc_sum_dealt(const DgcSumDealtArgs& args) {
  Queue(*this).run<DgcSumDealt>((args.deal.shard() + DgcSumDealt::kStretch - 1) / DgcSumDealt::kStretch, args);
}

void KernelBackend::dgc_undeal(const DgcUndealArgs& args) {
  Queue queue(*this);
  if (dgc_->undeal_blocks == 0) dgc_->undeal_blocks = queue.cooperative_blocks<DgcUndeal>();
  const int64_t useful = std::max(int64_t{1}, args.table.blocks * args.workers);
  queue.run_cooperative<DgcUndeal>(std::min(dgc_->undeal_blocks, useful),
                                   {args, dgc_->apply(args.workers, args.header.payload_bytes)});
}

void KernelBackend::dgc_settle(const DgcSettleArgs& args) {
  Queue queue(*this);
  const int64_t slots = int64_t{args.deal.owners} * args.deal.room;
  queue.run<DgcSettle>((slots + kDgcThreads - 1) / kDgcThreads, args);
}

}  // namespace dgc
