// Turns received messages into canonical ones (kernels/dgc_args.h), in ONE cooperative launch for all workers. The
// streams of indices are cut into chunks, whose words are counted. Then every chunk knows which entry it starts with,
// and writes its entries and a share of the values. Finally the numbers of entries per block become the blocks' ends.
// The received bytes may be anything, so the layout bounds every loop, and a number from a message is used as an index
// only after it is known to fit. The result has the CPU's bits, also where a message cannot be decoded.
#include <algorithm>

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/last_start.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/wire_codes.h"

namespace dgc::cuda {

struct DgcDecodeShared {
  DgcShared scan;
  unsigned long long entries, elements;
};

// One chunk of one worker's segment. Every thread has one word of the chunk, or none.
struct DgcChunkPart {
  int segment;
  const DgcSegment& s;
  const DgcCode& code;
  int64_t sum;    // the chunk's index in DgcDecodeScratch::sums
  int64_t chunk;  // the chunk's number within the segment
  const std::byte* coded;
  std::byte* payload;

  __device__ DgcChunkPart(const DgcDecodeArgs& a, int64_t i)
      : segment(segment_of_chunk(a, i % a.codes.chunks)),
        s(a.table.segments[segment]),
        code(a.codes.codes[segment]),
        sum(i),
        chunk(i % a.codes.chunks - code.first_chunk),
        coded(a.coded + static_cast<uint64_t>(i / a.codes.chunks) * (kWireHeaderBytes + a.codes.payload_bytes) +
              kWireHeaderBytes),
        payload(a.messages + static_cast<uint64_t>(i / a.codes.chunks) * (kWireHeaderBytes + a.payload_bytes) +
                kWireHeaderBytes) {}

  __device__ static int segment_of_chunk(const DgcDecodeArgs& a, int64_t number) {
    return last_start(a.table.count, number, [&](int i) { return a.codes.codes[i].first_chunk; });
  }
  template <typename T>
  __device__ const T* from(uint64_t at) const {
    return reinterpret_cast<const T*>(coded + at);
  }
  template <typename T>
  __device__ T* to(uint64_t at) const {
    return reinterpret_cast<T*>(payload + at);
  }
  __device__ int64_t word() const { return chunk * DgcCode::kChunk + threadIdx.x; }
  __device__ bool has_word() const { return word() < code.words; }
  __device__ unsigned run() const { return from<uint16_t>(code.low_at)[word()]; }
  __device__ unsigned quotients() const { return has_word() ? from<unsigned>(code.high_at)[word()] : 0; }
};
static_assert(DgcCode::kChunk == kDgcThreads);

// Writes entries of a segment. An entry beyond the k-th is dropped. An index outside the tensor is not counted, which
// shows: the last block's end is then not k.
class DgcPlacer {
 public:
  __device__ explicit DgcPlacer(const DgcChunkPart& part)
      : s_(part.s), ends_(part.to<unsigned>(part.s.block_ends_at)), offsets_(part.to<uint16_t>(part.s.offsets_at)) {}

  __device__ void place(uint64_t entry, uint64_t index) {
    if (entry >= static_cast<uint64_t>(s_.k)) return;
    offsets_[entry] = static_cast<uint16_t>(index);
    if (index >= static_cast<uint64_t>(s_.numel)) return;
    const auto block = static_cast<unsigned>(index / kDgcBlock);
    if (block != block_) count();
    block_ = block;
    ++entries_;
  }
  // Counts the entries that were placed since the last call. With rice a thread places several, which mostly lie in the
  // same block, so that one atomic addition counts all of them. With the other codes a thread places one entry.
  __device__ void count() {
    if (entries_ != 0) atomicAdd(&ends_[block_], entries_);
    entries_ = 0;
  }

 private:
  const DgcSegment& s_;
  unsigned* ends_;
  uint16_t* offsets_;
  unsigned block_ = 0, entries_ = 0;
};

// Whether the place of an index depends on all words before it.
__device__ inline bool is_counted(WireIndices indices) {
  switch (indices) {
    case WireIndices::block16:
    case WireIndices::int32:
      return false;
    case WireIndices::run16:
    case WireIndices::rice:
      return true;
  }
  return false;
}

__device__ inline void count_chunk(const DgcChunkPart& part, WireIndices indices, const DgcDecodeScratch& scratch,
                                   DgcShared& shared) {
  unsigned entries = 0, elements = 0;
  if (indices == WireIndices::rice) {
    entries = static_cast<unsigned>(__popc(part.quotients()));
  } else if (part.has_word()) {
    entries = part.run() != kLongRun;
    elements = part.run() + entries;
  }
  entries = block_sum(entries, shared), elements = block_sum(elements, shared);
  if (threadIdx.x == 0) scratch.sums[part.sum] = {entries, elements};
}

// Returns how many entries and elements the segment's chunks before this one encode. Where the block of threads has
// just asked for the chunk before this one (`follows`), only that chunk is added: to add up all for every chunk would
// read a number of sums that grows with the square of the chunks. The sums lie in shared memory, as registers are
// scarce here.
__device__ inline DgcChunkSum before_chunk(const DgcChunkPart& part, bool follows, const DgcDecodeScratch& scratch,
                                           DgcDecodeShared& shared) {
  __syncthreads();  // waits for threads that still read the previous chunk's numbers
  if (threadIdx.x == 0 && follows) {
    shared.entries += scratch.sums[part.sum - 1].entries;
    shared.elements += scratch.sums[part.sum - 1].elements;
  } else if (threadIdx.x == 0) {
    shared.entries = shared.elements = 0;
  }
  __syncthreads();
  if (follows) return {shared.entries, shared.elements};
  DgcChunkSum mine{0, 0};
  for (int64_t c = threadIdx.x; c < part.chunk; c += kDgcThreads) {
    const DgcChunkSum& sum = scratch.sums[part.sum - part.chunk + c];
    mine.entries += sum.entries;
    mine.elements += sum.elements;
  }
  if (mine.entries != 0) atomicAdd(&shared.entries, mine.entries);
  if (mine.elements != 0) atomicAdd(&shared.elements, mine.elements);
  __syncthreads();
  return {shared.entries, shared.elements};
}

__device__ inline void place_runs(const DgcChunkPart& part, const DgcChunkSum& before, DgcShared& shared) {
  const unsigned run = part.has_word() ? part.run() : 0;
  const bool is_entry = part.has_word() && run != kLongRun;
  const unsigned entry = block_scan(is_entry, shared).before;
  const unsigned element = block_scan(run + is_entry, shared).before;
  if (!is_entry) return;
  DgcPlacer placer(part);
  placer.place(before.entries + entry, before.elements + element + run);
  placer.count();
}

__device__ inline void place_rice(const DgcChunkPart& part, const DgcChunkSum& before, DgcShared& shared) {
  const unsigned word = part.quotients();
  uint64_t entry = before.entries + block_scan(static_cast<unsigned>(__popc(word)), shared).before;
  const auto* low = part.from<uint32_t>(part.code.low_at);
  const int b = part.code.low_bits;
  DgcPlacer placer(part);
  for (unsigned left = word; left != 0 && entry < static_cast<uint64_t>(part.s.k); left &= left - 1, ++entry) {
    const uint64_t at =
        static_cast<uint64_t>(part.word()) * 32 + static_cast<unsigned>(__ffs(static_cast<int>(left)) - 1);
    const uint64_t zeros = (at - entry) << b | bits_at(low, entry * static_cast<unsigned>(b), b);
    placer.place(entry, zeros + entry);
  }
  placer.count();
}

__device__ inline void place_words(const DgcChunkPart& part, WireIndices indices) {
  if (!part.has_word()) return;
  if (indices == WireIndices::block16) {
    part.to<uint16_t>(part.s.offsets_at)[part.word()] = part.from<uint16_t>(part.code.low_at)[part.word()];
    return;
  }
  DgcPlacer placer(part);
  placer.place(static_cast<uint64_t>(part.word()), part.from<unsigned>(part.code.low_at)[part.word()]);
  placer.count();
}

__device__ inline uint32_t code_at(const DgcChunkPart& part, WireValues format, int64_t i) {
  switch (format) {
    case WireValues::fp32:
      return part.from<uint32_t>(part.code.values_at)[i];
    case WireValues::fp16:
    case WireValues::bf16:
      return part.from<uint16_t>(part.code.values_at)[i];
    case WireValues::int8:
      return part.from<uint8_t>(part.code.values_at)[i];
  }
  return 0;
}

// Decodes this chunk's share of the segment's values, which all chunks share equally.
__device__ inline void decode_values(const DgcChunkPart& part, WireValues format) {
  const int64_t chunks = DgcCode::chunks_of(part.code.words);
  const float scale = has_scale(format) ? *part.from<float>(part.code.scale_at) : 0.f;
  auto* values = part.to<float>(part.s.values_at);
  const int64_t end = part.s.k * (part.chunk + 1) / chunks;
  for (int64_t i = part.s.k * part.chunk / chunks + threadIdx.x; i < end; i += kDgcThreads) {
    values[i] = value_of(format, code_at(part, format, i), scale);
  }
}

// Writes the blocks' ends of one worker's segment: with block16 they are copied from the message, else they are running
// sums of what was counted.
__device__ inline void finish_blocks(const DgcDecodeArgs& a, int64_t worker, int segment, DgcShared& shared) {
  const DgcSegment& s = a.table.segments[segment];
  auto* ends =
      reinterpret_cast<unsigned*>(a.messages + static_cast<uint64_t>(worker) * (kWireHeaderBytes + a.payload_bytes) +
                                  kWireHeaderBytes + s.block_ends_at);
  const auto* came = reinterpret_cast<const unsigned*>(
      a.coded + static_cast<uint64_t>(worker) * (kWireHeaderBytes + a.codes.payload_bytes) + kWireHeaderBytes +
      a.codes.codes[segment].high_at);
  unsigned before = 0;
  for (int64_t first = 0; first < s.blocks(); first += kDgcThreads) {
    const int64_t b = first + threadIdx.x;
    const bool inside = b < s.blocks();
    if (a.codes.format.indices == WireIndices::block16) {
      if (inside) ends[b] = came[b];
      continue;
    }
    const unsigned mine = inside ? ends[b] : 0;
    const DgcScan scan = block_scan(mine, shared);
    if (inside) ends[b] = before + scan.before + mine;
    before += scan.total;
  }
}

struct DgcDecode {
  static constexpr const char* kName = "dgc_decode";
  static constexpr int kBlock = kDgcThreads;
  struct Args {
    DgcDecodeArgs a;
    DgcDecodeScratch scratch;
  };
  using Shared = DgcDecodeShared;

  __device__ static void run(const Args& args, Shared& shared) {
    const DgcDecodeArgs& a = args.a;
    const WireIndices indices = a.codes.format.indices;
    if (a.control->skip != 0 || a.control->fault.kind != WireFaultKind::none) return;
    const bool counted = is_counted(indices);
    const int64_t chunks = a.workers * a.codes.chunks;
    // All messages are zeroed as one stretch, because they lie one after another without a gap; copy_headers() then
    // writes the headers.
    zero_all(reinterpret_cast<unsigned*>(a.messages),
             a.workers * static_cast<int64_t>((kWireHeaderBytes + a.payload_bytes) / 4));
    for (int64_t i = blockIdx.x; i < chunks && counted; i += gridDim.x) {
      count_chunk({a, i}, indices, args.scratch, shared.scan);
    }
    grid_sync();
    copy_headers(a);
    // Every block of threads takes chunks that lie one behind another, so before_chunk() adds up few. Their numbers fit
    // 32 bits, which save registers: 2^32 chunks would be 2 TiB of words.
    const auto each = static_cast<unsigned>((chunks + gridDim.x - 1) / gridDim.x), from = blockIdx.x * each;
    const auto to = static_cast<unsigned>(smaller(chunks, int64_t{from} + each));
    for (unsigned i = from; i < to; ++i) {
      const DgcChunkPart part(a, i);
      if (counted) {
        const DgcChunkSum before = before_chunk(part, i > from && part.chunk > 0, args.scratch, shared);
        indices == WireIndices::rice ? place_rice(part, before, shared.scan) : place_runs(part, before, shared.scan);
      } else {
        place_words(part, indices);
      }
      decode_values(part, a.codes.format.values);
    }
    grid_sync();
    for (int64_t i = blockIdx.x; i < int64_t{a.workers} * a.table.count; i += gridDim.x) {
      finish_blocks(a, i / a.table.count, static_cast<int>(i % a.table.count), shared.scan);
    }
  }

  __device__ static void copy_headers(const DgcDecodeArgs& a) {
    constexpr auto kWords = static_cast<unsigned>(kWireHeaderBytes / 8);
    if (threadIdx.x >= kWords) return;
    for (int64_t worker = blockIdx.x; worker < a.workers; worker += gridDim.x) {
      const std::byte* from = a.coded + static_cast<uint64_t>(worker) * (kWireHeaderBytes + a.codes.payload_bytes);
      std::byte* to = a.messages + static_cast<uint64_t>(worker) * (kWireHeaderBytes + a.payload_bytes);
      reinterpret_cast<uint64_t*>(to)[threadIdx.x] = reinterpret_cast<const uint64_t*>(from)[threadIdx.x];
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_decode(const DgcDecodeArgs& args) {
  Queue queue(*this);
  if (dgc_->decode_blocks == 0) dgc_->decode_blocks = queue.cooperative_blocks<DgcDecode>();
  const int64_t useful = std::max(int64_t{1}, args.workers * args.codes.chunks);
  queue.run_cooperative<DgcDecode>(std::min(dgc_->decode_blocks, useful),
                                   {args, dgc_->decode(args.workers, args.codes.chunks)});
}

}  // namespace dgc
