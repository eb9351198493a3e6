// How a block of threads adds up what workers sent, worker after worker (add_in_turn), and where dgc_apply does so for
// one wire block: in shared memory, in a place for each element that is sent, or, where these are too many for that, in
// the arena `sum`. Both begin and end with sums of +0, and give the same bits.
#pragma once

#include "kernels/cuda/dgc_check.cuh"

namespace dgc::cuda {

struct DgcSumsShared {
  static constexpr unsigned kMost = 8192;
  unsigned sent[kDgcBlock / 32];    // a bit for each element: some worker sent it
  uint16_t before[kDgcBlock / 32];  // elements that are sent, in the words before this one
  float sums[kMost];                // of the elements that are sent, in their order
};

struct DgcApplyShared {
  DgcCheckShared check;
  unsigned begin[kDgcThreads], end[kDgcThreads];  // of one block's entries in the messages of as many workers
  unsigned warp_sums[kDgcWarps];
  DgcSumsShared sums;
};

// Reads where the block's entries lie in the messages of the workers from `first` on, at most kDgcThreads of them, all
// at once. Returns how many workers these are. Before the next call all threads must have waited for each other.
__device__ inline int find_entries(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, int first,
                                   DgcApplyShared& shared) {
  const auto some = static_cast<int>(smaller(a.workers - first, kDgcThreads));
  const int mine = static_cast<int>(threadIdx.x);
  if (mine < some) {
    const DgcEntries e(DgcMessages{a}.payload(first + mine), s, local);
    shared.begin[mine] = e.begin;
    shared.end[mine] = e.end;
  }
  __syncthreads();
  return some;
}

// Calls body(at) with the elements that the workers from `first` on sent, of which find_entries has found `some`, a
// warp for each worker, and kDgcSentAtOnce elements for each lane. An element of kDgcBlock stands for none.
inline constexpr int kDgcSentAtOnce = 4;
template <typename Body>
__device__ inline void each_sent(const DgcApplyArgs& a, const DgcSegment& s, int first, int some,
                                 const DgcApplyShared& shared, const Body& body) {
  for (int worker = warp(); worker < some; worker += kDgcWarps) {
    const auto* offsets = reinterpret_cast<const uint16_t*>(DgcMessages{a}.payload(first + worker) + s.offsets_at);
    const unsigned end = shared.end[worker];
    for (unsigned i = shared.begin[worker]; i < end; i += 32 * kDgcSentAtOnce) {
      unsigned at[kDgcSentAtOnce];
#pragma unroll
      for (unsigned j = 0; j < kDgcSentAtOnce; ++j) {
        const unsigned entry = i + 32 * j + static_cast<unsigned>(lane());
        at[j] = entry < end ? offsets[entry] : static_cast<unsigned>(kDgcBlock);
      }
      body(at);
    }
  }
}

struct DgcEntry {
  static constexpr unsigned kNone = 0xffffffffu;
  unsigned at;  // the element, or kNone
  float value;
};

// Adds the entries of workers 0 ... workers - 1 to `sums`, worker after worker. entry(worker, number) is a worker's
// entry of that number, or none. One worker's entries are different elements, so threads may add them in any order.
// Between two workers all threads wait; meanwhile the entries of the next workers are on their way.
template <typename Sums, typename Entry>
__device__ inline void add_in_turn(int workers, const Sums& sums, const Entry& entry) {
  constexpr int kAhead = 4;
  const auto first_of = [&](int worker) {
    return worker < workers ? entry(worker, threadIdx.x) : DgcEntry{DgcEntry::kNone, 0};
  };
  DgcEntry ahead[kAhead];
#pragma unroll
  for (int j = 0; j < kAhead; ++j) ahead[j] = first_of(j);
  for (int from = 0; from < workers; from += kAhead) {
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (from + j >= workers) break;
      DgcEntry e = ahead[j];
      ahead[j] = first_of(from + j + kAhead);
      for (unsigned number = threadIdx.x; e.at != DgcEntry::kNone;) {
        sums.add(e.at, e.value);
        number += kDgcThreads;
        e = entry(from + j, number);
      }
      __syncthreads();
    }
  }
}

// Compares bits, because a sum of -0 must become 0.
__device__ inline bool any_bit(const float4& x) {
  return (__float_as_uint(x.x) | __float_as_uint(x.y) | __float_as_uint(x.z) | __float_as_uint(x.w)) != 0;
}

class DgcArenaSums {
 public:
  // The sums of the elements of one wire block start at `sums`.
  __device__ explicit DgcArenaSums(float* sums) : sums_(sums) {}

  __device__ void add(unsigned at, float value) const { sums_[at] += value; }
  // Returns the sum, and leaves zero.
  __device__ float take(unsigned at) const {
    return __uint_as_float(atomicExch(reinterpret_cast<unsigned*>(sums_ + at), 0u));
  }
  __device__ float get(int at) const { return sums_[at]; }
  __device__ float4 get_four(int i) const { return reinterpret_cast<const float4*>(sums_)[i]; }
  __device__ void clear(int at) const { sums_[at] = 0; }
  // Nearly all sums are zero already and need no store.
  __device__ void clear_four(int i, const float4& were) const {
    if (any_bit(were)) reinterpret_cast<float4*>(sums_)[i] = make_float4(0, 0, 0, 0);
  }

 private:
  float* sums_;
};

class DgcSharedSums {
 public:
  // True if what all workers sent of a block has room here. Then find_entries has found it. All threads get the same.
  __device__ static bool have_room(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, DgcApplyShared& shared) {
    if (a.workers > kDgcThreads) return false;
    const int some = find_entries(a, s, local, 0, shared), mine = static_cast<int>(threadIdx.x);
    const unsigned entries = mine < some ? shared.end[mine] - shared.begin[mine] : 0;
    return block_sum(entries, shared) <= DgcSumsShared::kMost;
  }

  // Makes a sum of zero for each element that a worker sent. All threads call this, when there is room.
  __device__ DgcSharedSums(const DgcApplyArgs& a, const DgcSegment& s, DgcApplyShared& shared) : in_(shared.sums) {
    constexpr int kWords = static_cast<int>(kDgcBlock) / 32, kEach = kWords / kDgcThreads;
    for (int i = static_cast<int>(threadIdx.x); i < kWords; i += kDgcThreads) in_.sent[i] = 0;
    __syncthreads();
    each_sent(a, s, 0, a.workers, shared, [&](const unsigned(&at)[kDgcSentAtOnce]) {
#pragma unroll
      for (const unsigned element : at) {
        if (element < kDgcBlock) atomicOr(&in_.sent[element / 32], 1u << element % 32);
      }
    });
    __syncthreads();
    const int first = static_cast<int>(threadIdx.x) * kEach;
    unsigned count = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) count += static_cast<unsigned>(__popc(in_.sent[first + j]));
    const DgcScan scan = block_scan(count, shared);
    unsigned before = scan.before;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      in_.before[first + j] = static_cast<uint16_t>(before);
      before += static_cast<unsigned>(__popc(in_.sent[first + j]));
    }
    for (unsigned i = threadIdx.x; i < scan.total; i += kDgcThreads) in_.sums[i] = 0;
    __syncthreads();
  }

  __device__ void add(unsigned at, float value) const { in_.sums[place(at)] += value; }
  __device__ float take(unsigned at) const {
    return __uint_as_float(atomicExch(reinterpret_cast<unsigned*>(&in_.sums[place(at)]), 0u));
  }
  __device__ float get(int at) const {
    return (in_.sent[at / 32] >> at % 32 & 1u) != 0 ? in_.sums[place(static_cast<unsigned>(at))] : 0.f;
  }
  __device__ float4 get_four(int i) const {
    if ((in_.sent[i / 8] >> 4 * (i % 8) & 15u) == 0) return make_float4(0, 0, 0, 0);
    return make_float4(get(4 * i), get(4 * i + 1), get(4 * i + 2), get(4 * i + 3));
  }
  __device__ void clear(int) const {}
  __device__ void clear_four(int, const float4&) const {}

 private:
  __device__ unsigned place(unsigned at) const {
    return in_.before[at / 32] + static_cast<unsigned>(__popc(in_.sent[at / 32] & ((1u << at % 32) - 1)));
  }

  DgcSumsShared& in_;
};

}  // namespace dgc::cuda
