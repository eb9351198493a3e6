// Checks whether the messages of all workers can be used: each message's header, checksum and indices, in the order of
// WireFaultKind. Every block gets the same answer, which is the fault of the lowest worker that has one.
#pragma once

#include "kernels/cuda/dgc_seal.cuh"
#include "kernels/cuda/last_block.cuh"

namespace dgc::cuda {

// A fault as one number. The largest number is reported: it belongs to the lowest worker, the worker's first kind of
// fault, and the lowest tensor with this fault. 0 stands for no fault.
__device__ inline unsigned long long fault_code(int worker, WireFaultKind kind, int tensor) {
  const auto place = static_cast<unsigned long long>(worker) << 36 | static_cast<unsigned long long>(kind) << 32 |
                     static_cast<unsigned>(tensor);
  return ~place;
}

struct DgcMessages {
  const DgcApplyArgs& a;

  __device__ const std::byte* operator[](int worker) const {
    return a.messages + static_cast<uint64_t>(worker) * (kWireHeaderBytes + a.header.payload_bytes);
  }
  __device__ const uint64_t* header(int worker) const { return reinterpret_cast<const uint64_t*>((*this)[worker]); }
  __device__ const std::byte* payload(int worker) const { return (*this)[worker] + kWireHeaderBytes; }
};

// One block's entries in one message. A message that has not been checked may hold anything.
struct DgcEntries {
  const uint16_t* offsets;
  const float* values;
  unsigned begin, end;

  __device__ DgcEntries(const std::byte* payload, const DgcSegment& s, int64_t local)
      : offsets(reinterpret_cast<const uint16_t*>(payload + s.offsets_at)),
        values(reinterpret_cast<const float*>(payload + s.values_at)) {
    const auto* ends = reinterpret_cast<const unsigned*>(payload + s.block_ends_at);
    begin = local == 0 ? 0 : ends[local - 1];
    end = ends[local];
  }
};

inline constexpr int kHashesPerWarp = 8;

// hashes[i] = the XXH64 of piece i of the payloads of all messages, with the step of the message's header as seed.
__device__ inline void hash_messages(const DgcApplyArgs& a, uint64_t* hashes) {
  const DgcMessages messages{a};
  const int64_t pieces = wire_pieces(a.header.payload_bytes), all = a.workers * pieces;
  const int64_t step = int64_t{gridDim.x} * kDgcWarps * kHashesPerWarp;
  for (int64_t first = (int64_t{blockIdx.x} * kDgcWarps + warp()) * kHashesPerWarp; first < all; first += step) {
    const int64_t i = first + lane() / 4;
    const bool inside = i < all;
    const int worker = inside ? static_cast<int>(i / pieces) : 0;
    const int64_t piece = inside ? i % pieces : 0;
    const auto* words = reinterpret_cast<const uint64_t*>(messages.payload(worker)) + piece * int64_t{kWirePiece / 8};
    const uint64_t hash = xxh64_by_four(inside ? words_of_piece(a.header.payload_bytes, piece) : 0,
                                        messages.header(worker)[2], [&](int64_t w) { return words[w]; });
    if (inside && lane() % 4 == 0) hashes[i] = hash;
  }
}

// True if of the entries first, first + step, and so on each offset lies below `limit` and above the one before it.
__device__ inline bool are_sound(const uint16_t* offsets, unsigned begin, unsigned end, int limit, unsigned first,
                                 unsigned step) {
  constexpr unsigned kAtOnce = 4;  // loads that are under way at once
  bool sound = true;
  for (unsigned at = first; at < end; at += kAtOnce * step) {
    int here[kAtOnce], before[kAtOnce];
#pragma unroll
    for (unsigned j = 0; j < kAtOnce; ++j) {
      const unsigned i = at + j * step;
      here[j] = i < end ? offsets[i] : 0;
      before[j] = i < end && i > begin ? offsets[i - 1] : -1;
    }
#pragma unroll
    for (unsigned j = 0; j < kAtOnce; ++j)
      sound = sound && (at + j * step >= end || (before[j] < here[j] && here[j] < limit));
  }
  return sound;
}

// Checks the indices of each block of each message on their own; together these are all indices. A warp takes one block
// of as many messages as are its share, or where there are fewer blocks than warps, as many warps as there are to each
// share one.
__device__ inline void check_indices(const DgcApplyArgs& a, unsigned long long* fault) {
  if (a.table.blocks == 0) return;  // nothing is compressed
  const int64_t warps = int64_t{gridDim.x} * kDgcWarps;
  const auto workers = static_cast<unsigned>(a.workers);
  const auto share = static_cast<unsigned>(smaller((a.table.blocks * workers + warps - 1) / warps, 32));
  const unsigned shares = (workers + share - 1) / share;
  const int64_t all = a.table.blocks * shares, sharing = warps > all ? warps / all : 1;
  for (int64_t i = int64_t{blockIdx.x} * kDgcWarps + warp(); i < all * sharing; i += warps) {
    const int64_t block = i / sharing / shares;
    const auto from = static_cast<int>(i / sharing % shares * share);
    const auto some = static_cast<int>(smaller(a.workers - from, share));
    const int segment = a.table.segment_of_block[block];
    const DgcSegment& s = a.table.segments[segment];
    const int64_t local = block - s.first_block, left = s.numel - local * kDgcBlock;
    const DgcEntries mine(DgcMessages{a}.payload(from + (lane() < some ? lane() : 0)), s, local);
    for (int j = 0; j < some; ++j) {
      const unsigned begin = __shfl_sync(kAllLanes, mine.begin, j), end = __shfl_sync(kAllLanes, mine.end, j);
      const auto* offsets = reinterpret_cast<const uint16_t*>(DgcMessages{a}.payload(from + j) + s.offsets_at);
      const bool sound =
          begin <= end && end <= s.k && (left > kDgcBlock || end == s.k) &&
          are_sound(offsets, begin, end, static_cast<int>(smaller(left, kDgcBlock)),
                    begin + static_cast<unsigned>(i % sharing * 32 + lane()), static_cast<unsigned>(32 * sharing));
      if (!sound) atomicMax(fault, fault_code(from + j, WireFaultKind::indices, segment));
    }
  }
}

__device__ inline WireHeader read_header(const uint64_t* words) {
  WireHeader header;
  memcpy(static_cast<void*>(&header), words, sizeof(header));
  return header;
}

// All threads of a warp call this together, and each four neighbouring threads check one header.
__device__ inline WireFaultKind check_header(const DgcApplyArgs& a, int worker, const uint64_t* hashes) {
  const bool inside = worker < a.workers;
  const int64_t pieces = wire_pieces(a.header.payload_bytes);
  const uint64_t* words = DgcMessages{a}.header(inside ? worker : 0);
  const uint64_t* mine = hashes + (inside ? worker : 0) * pieces;
  const uint64_t checksum = xxh64_by_four(inside ? kHeaderWords - 1 + pieces : 0, words[2],
                                          [&](int64_t i) { return checked_word(words, mine, i); });
  if (!inside) return WireFaultKind::none;
  const WireHeader got = read_header(words);
  const WireHeader& want = a.header;
  if (got.magic != want.magic) return WireFaultKind::magic;
  if (got.version != want.version) return WireFaultKind::version;
  if (got.values != want.values || got.indices != want.indices) return WireFaultKind::format;
  if (got.checksum != checksum) return WireFaultKind::checksum;
  if (got.step != a.control->step) return WireFaultKind::stale;
  if (got.worker != static_cast<unsigned>(worker)) return WireFaultKind::worker;
  if (got.tensors != want.tensors || got.payload_bytes != want.payload_bytes || got.entries != want.entries) {
    return WireFaultKind::layout;
  }
  return WireFaultKind::none;
}

// Called when all pieces are hashed and all indices are checked. Every block calls it, which costs less than waiting
// for one block.
__device__ inline unsigned long long find_fault(const DgcApplyArgs& a, const DgcApplyScratch& scratch,
                                                unsigned long long& shared) {
  if (threadIdx.x == 0) shared = *scratch.fault;
  __syncthreads();
  for (int first = warp() * kHashesPerWarp; first < a.workers; first += kDgcWarps * kHashesPerWarp) {
    const int worker = first + lane() / 4;
    const WireFaultKind kind = check_header(a, worker, scratch.hashes);
    if (kind != WireFaultKind::none && lane() % 4 == 0) atomicMax(&shared, fault_code(worker, kind, 0));
  }
  __syncthreads();
  return shared;
}

__device__ inline WireFault decode_fault(const DgcApplyArgs& a, unsigned long long code) {
  WireFault fault;
  fault.worker = static_cast<unsigned>(~code >> 36);
  fault.kind = static_cast<WireFaultKind>(~code >> 32 & 15u);
  const WireHeader got = read_header(DgcMessages{a}.header(static_cast<int>(fault.worker)));
  if (fault.kind == WireFaultKind::version) fault.found = got.version;
  if (fault.kind == WireFaultKind::format) fault.found = wire_format_code(got.values, got.indices);
  if (fault.kind == WireFaultKind::stale) fault.found = got.step;
  if (fault.kind == WireFaultKind::worker) fault.found = got.worker;
  if (fault.kind == WireFaultKind::indices) fault.found = static_cast<unsigned>(~code);
  return fault;
}

struct DgcCheckShared {
  unsigned long long fault;
  bool is_last;
};

// Checks all messages, and then calls use() on every block if no message has a fault. Else the fault becomes
// control->fault. Where the step is skipped or has a fault already, nothing happens. All blocks of a cooperative launch
// must call this.
template <typename Use>
__device__ inline void use_if_sound(const DgcApplyArgs& a, const DgcApplyScratch& scratch, DgcCheckShared& shared,
                                    const Use& use) {
  if (a.control->skip != 0 || a.control->fault.kind != WireFaultKind::none) return;
  hash_messages(a, scratch.hashes);
  check_indices(a, scratch.fault);
  grid_sync();
  const unsigned long long fault = find_fault(a, scratch, shared.fault);
  if (fault == 0) {
    use();
  } else if (blockIdx.x == 0 && threadIdx.x == 0) {
    a.control->fault = decode_fault(a, fault);
  }
  if (last_block(scratch.ticket, gridDim.x, shared.is_last) && threadIdx.x == 0) *scratch.fault = 0;
}

}  // namespace dgc::cuda
