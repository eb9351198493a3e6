// Turns the canonical message into the one that travels (kernels/dgc_args.h), in ONE cooperative launch. First the
// message that travels is zeroed and, for int8, the largest magnitude of each segment is found. Then every block of
// 65,536 elements writes its entries, rounds their values and leaves the rounding errors in v. Finally the canonical
// message gets a new checksum. Only what is sent is touched. The bits are the CPU's, because both backends use the
// functions of kernels/wire_codes.h.
#include <algorithm>

#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/dgc_seal.cuh"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/wire_codes.h"

namespace dgc::cuda {

// One block of one segment, in both messages. The canonical message was made by this process, so its indices are sound.
struct DgcBlockPart {
  const DgcSegment& s;
  const DgcCode& code;
  int64_t local;  // the block's number within the segment
  std::byte* payload;
  std::byte* coded;
  unsigned begin, end;  // the block's entries

  __device__ DgcBlockPart(const DgcEncodeArgs& a, int segment, int64_t block)
      : s(a.table.segments[segment]),
        code(a.codes.codes[segment]),
        local(block - s.first_block),
        payload(a.message + kWireHeaderBytes),
        coded(a.coded + kWireHeaderBytes),
        begin(end_of(local - 1)),
        end(end_of(local)) {}

  template <typename T>
  __device__ T* from(uint64_t at) const {
    return reinterpret_cast<T*>(payload + at);
  }
  template <typename T>
  __device__ T* to(uint64_t at) const {
    return reinterpret_cast<T*>(coded + at);
  }
  __device__ unsigned end_of(int64_t b) const { return b < 0 ? 0 : from<const unsigned>(s.block_ends_at)[b]; }
  __device__ unsigned offset(unsigned entry) const { return from<const uint16_t>(s.offsets_at)[entry]; }

  // Returns the index of the element behind the last entry before block b, or 0 if there is no such entry.
  __device__ int64_t next_before(int64_t b) const {
    const unsigned before = end_of(b - 1);
    if (before == 0) return 0;
    int64_t low = 0, high = b - 1;  // becomes the block that holds the entry before - 1
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (end_of(middle) >= before) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low * kDgcBlock + offset(before - 1) + 1;
  }
  // Returns how many words kLongRun stand before block b's first entry. Within a block no run is that long.
  __device__ unsigned long_runs(int64_t b) const {
    if (end_of(b) == end_of(b - 1)) return 0;
    return static_cast<unsigned>((b * kDgcBlock + offset(end_of(b - 1)) - next_before(b)) / kLongRun);
  }
};

__device__ inline void put_bits(unsigned* words, uint64_t at, unsigned bits) {
  const uint64_t both = static_cast<uint64_t>(bits) << at % 32;
  if (static_cast<unsigned>(both) != 0) atomicOr(&words[at / 32], static_cast<unsigned>(both));
  if (both >> 32 != 0) atomicOr(&words[at / 32 + 1], static_cast<unsigned>(both >> 32));
}

// All threads of the block call this.
__device__ inline void encode_runs(const DgcBlockPart& part, DgcShared& shared) {
  unsigned before = 0;
  for (int64_t b = threadIdx.x; b < part.local; b += kDgcThreads) before += part.long_runs(b);
  before = block_sum(before, shared);
  auto* words = part.to<uint16_t>(part.code.low_at);
  const unsigned here = part.long_runs(part.local);
  const int64_t next = part.next_before(part.local), first = part.local * kDgcBlock;
  for (unsigned i = part.begin + threadIdx.x; i < part.end; i += kDgcThreads) {
    int64_t at = int64_t{i} + before + here;
    if (i == part.begin) {
      for (unsigned j = 1; j <= here; ++j) words[at - j] = kLongRun;
      words[at] = static_cast<uint16_t>((first + part.offset(i) - next) % kLongRun);
    } else {
      words[at] = static_cast<uint16_t>(part.offset(i) - part.offset(i - 1) - 1);
    }
  }
}

__device__ inline void encode_indices(const DgcBlockPart& part, WireIndices indices, DgcShared& shared) {
  if (indices == WireIndices::run16) return encode_runs(part, shared);
  if (indices == WireIndices::block16 && threadIdx.x == 0) part.to<unsigned>(part.code.high_at)[part.local] = part.end;
  const auto first = static_cast<unsigned>(part.local * kDgcBlock);
  const int b = part.code.low_bits;
  for (unsigned i = part.begin + threadIdx.x; i < part.end; i += kDgcThreads) {
    const unsigned index = first + part.offset(i);
    switch (indices) {
      case WireIndices::block16:
        part.to<uint16_t>(part.code.low_at)[i] = static_cast<uint16_t>(part.offset(i));
        break;
      case WireIndices::int32:
        part.to<unsigned>(part.code.low_at)[i] = index;
        break;
      case WireIndices::run16:  // encode_runs() has done it
        break;
      case WireIndices::rice:
        put_bits(part.to<unsigned>(part.code.high_at), uint64_t{(index - i) >> b} + i, 1);
        put_bits(part.to<unsigned>(part.code.low_at), uint64_t{i} * static_cast<unsigned>(b),
                 low_bits_of(index - i, b));
        break;
    }
  }
}

__device__ inline void encode_values(const DgcBlockPart& part, WireValues format, unsigned largest, float* v) {
  const float scale = has_scale(format) ? int8_scale(__uint_as_float(largest)) : 0.f;
  if (has_scale(format) && part.local == 0 && threadIdx.x == 0) *part.to<float>(part.code.scale_at) = scale;
  auto* values = part.from<float>(part.s.values_at);
  for (unsigned i = part.begin + threadIdx.x; i < part.end; i += kDgcThreads) {
    const float value = values[i];
    const uint32_t code = value_code(format, value, scale);
    const float sent = value_of(format, code, scale);
    switch (format) {
      case WireValues::fp32:
        part.to<uint32_t>(part.code.values_at)[i] = code;
        break;
      case WireValues::fp16:
      case WireValues::bf16:
        part.to<uint16_t>(part.code.values_at)[i] = static_cast<uint16_t>(code);
        break;
      case WireValues::int8:
        part.to<uint8_t>(part.code.values_at)[i] = static_cast<uint8_t>(code);
        break;
    }
    if (wire_finite(value)) v[part.local * kDgcBlock + part.offset(i)] = value - sent;
    values[i] = sent;
  }
}

// All threads of the block call this.
__device__ inline void find_largest(const DgcBlockPart& part, unsigned* largest) {
  const auto* values = part.from<const float>(part.s.values_at);
  unsigned mine = 0;
  for (unsigned i = part.begin + threadIdx.x; i < part.end; i += kDgcThreads) {
    if (wire_finite(values[i]) && wire_magnitude(values[i]) > mine) mine = wire_magnitude(values[i]);
  }
  mine = warp_max(mine);
  if (lane() == 0 && mine != 0) atomicMax(largest, mine);
}

struct DgcEncode {
  static constexpr const char* kName = "dgc_encode";
  static constexpr int kBlock = kDgcThreads;
  struct Args {
    DgcEncodeArgs a;
    DgcEncodeScratch scratch;
  };
  using Shared = DgcShared;

  __device__ static void run(const Args& args, Shared& shared) {
    const DgcEncodeArgs& a = args.a;
    const DgcEncodeScratch& scratch = args.scratch;
    const WireFormat format = a.codes.format;
    if (a.control->skip != 0) return;
    zero_all(reinterpret_cast<unsigned*>(a.coded + kWireHeaderBytes), static_cast<int64_t>(a.codes.payload_bytes / 4));
    if (has_scale(format.values)) {
      for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
        const int segment = a.table.segment_of_block[block];
        find_largest({a, segment, block}, &scratch.largest[segment]);
      }
    }
    grid_sync();
    for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
      const int segment = a.table.segment_of_block[block];
      const DgcBlockPart part(a, segment, block);
      encode_indices(part, format.indices, shared);
      encode_values(part, format.values, scratch.largest[segment], a.v + part.s.offset);
    }
    grid_sync();
    zero_all(scratch.largest, a.table.count);
    hash_payload(a.message, a.header.payload_bytes, a.control->step, scratch.hashes);
    if (last_block(scratch.ticket, gridDim.x, shared.is_last) && warp() == 0) {
      write_header(a.header, a.control->step, scratch.hashes, a.message, a.coded);
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_encode(const DgcEncodeArgs& args) {
  Queue queue(*this);
  if (dgc_->encode_blocks == 0) dgc_->encode_blocks = queue.cooperative_blocks<DgcEncode>();
  queue.run_cooperative<DgcEncode>(std::min(dgc_->encode_blocks, std::max(int64_t{1}, args.table.blocks)),
                                   {args, dgc_->encode(args.table, args.header.payload_bytes)});
}

}  // namespace dgc
