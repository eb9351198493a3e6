#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/wire_message.h"
#include "kernels/wire_codes.h"

// Turns received messages into canonical ones, with a task per worker and segment. The received bytes may be anything,
// so the layout bounds every loop, and a number from a message is used as an index only after it is known to fit.
namespace dgc {
namespace {

struct DecodedPart {
  const DgcSegment& segment;
  const DgcCode& code;
  const std::byte* coded;
  std::byte* payload;  // all zero at first

  template <typename T>
  const T* from(uint64_t at) const {
    return reinterpret_cast<const T*>(coded + at);
  }
  template <typename T>
  T* to(uint64_t at) const {
    return reinterpret_cast<T*>(payload + at);
  }
  // entry is less than k. An index outside the tensor is not counted, which shows: the last block's end is then not k.
  void place(int64_t entry, uint64_t index) const {
    to<uint16_t>(segment.offsets_at)[entry] = static_cast<uint16_t>(index);
    if (index < static_cast<uint64_t>(segment.numel)) {
      ++to<uint32_t>(segment.block_ends_at)[index / kDgcBlock];
    }
  }
  // Turns the numbers of entries per block into the blocks' ends.
  void add_up_blocks() const {
    auto* ends = to<uint32_t>(segment.block_ends_at);
    for (int64_t b = 1; b < segment.blocks(); ++b) ends[b] += ends[b - 1];
  }
};

void decode_int32(const DecodedPart& part) {
  const auto* words = part.from<uint32_t>(part.code.low_at);
  for (int64_t entry = 0; entry < part.segment.k; ++entry) part.place(entry, words[entry]);
}

void decode_run16(const DecodedPart& part) {
  const auto* words = part.from<uint16_t>(part.code.low_at);
  uint64_t next = 0;  // the element behind the last one that has been read
  int64_t entry = 0;
  for (int64_t i = 0; i < part.code.words && entry < part.segment.k; ++i) {
    next += words[i];
    if (words[i] != kLongRun) part.place(entry++, next++);
  }
}

void decode_rice(const DecodedPart& part) {
  const auto* high = part.from<uint32_t>(part.code.high_at);
  const auto* low = part.from<uint32_t>(part.code.low_at);
  const int b = part.code.low_bits;
  uint64_t entry = 0;
  const auto k = static_cast<uint64_t>(part.segment.k);
  for (int64_t w = 0; w < part.code.words; ++w) {
    for (uint32_t left = high[w]; left != 0 && entry < k; left &= left - 1, ++entry) {
      const uint64_t at = static_cast<uint64_t>(w) * 32 + static_cast<uint64_t>(std::countr_zero(left));
      const uint64_t zeros = (at - entry) << b | bits_at(low, entry * static_cast<uint64_t>(b), b);
      part.place(static_cast<int64_t>(entry), zeros + entry);
    }
  }
}

void decode_indices(const DecodedPart& part, WireIndices indices) {
  const DgcSegment& s = part.segment;
  switch (indices) {
    case WireIndices::block16:
      std::copy_n(part.from<uint32_t>(part.code.high_at), s.blocks(), part.to<uint32_t>(s.block_ends_at));
      std::copy_n(part.from<uint16_t>(part.code.low_at), s.k, part.to<uint16_t>(s.offsets_at));
      return;
    case WireIndices::int32:
      decode_int32(part);
      return part.add_up_blocks();
    case WireIndices::run16:
      decode_run16(part);
      return part.add_up_blocks();
    case WireIndices::rice:
      decode_rice(part);
      return part.add_up_blocks();
  }
}

void decode_values(const DecodedPart& part, WireValues format) {
  const float scale = has_scale(format) ? *part.from<float>(part.code.scale_at) : 0;
  const auto bytes = static_cast<size_t>(wire_value_bytes(format));
  const std::byte* from = part.coded + part.code.values_at;
  auto* values = part.to<float>(part.segment.values_at);
  for (int64_t entry = 0; entry < part.segment.k; ++entry) {
    uint32_t code = 0;
    std::memcpy(&code, from, bytes);  // the lowest bytes come first
    from += bytes;
    values[entry] = value_of(format, code, scale);
  }
}

}  // namespace

void decode_messages(const DgcDecodeArgs& args, [[maybe_unused]] int threads) {
  if (nothing_to_do(*args.control)) return;
  const auto coded_of = [&](int64_t worker) {
    return args.coded + static_cast<uint64_t>(worker) * (kWireHeaderBytes + args.codes.payload_bytes);
  };
  const auto message_of = [&](int64_t worker) {
    return args.messages + static_cast<uint64_t>(worker) * (kWireHeaderBytes + args.payload_bytes);
  };
  for (int64_t worker = 0; worker < args.workers; ++worker) {
    std::memcpy(message_of(worker), coded_of(worker), kWireHeaderBytes);
    std::memset(message_of(worker) + kWireHeaderBytes, 0, args.payload_bytes);
  }
  const int64_t parts = int64_t{args.workers} * args.table.count;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t worker = i / args.table.count, segment = i % args.table.count;
    const DecodedPart part{args.table.segments[segment], args.codes.codes[segment], coded_of(worker) + kWireHeaderBytes,
                           message_of(worker) + kWireHeaderBytes};
    decode_indices(part, args.codes.format.indices);
    decode_values(part, args.codes.format.values);
  }
}

void CpuBackend::dgc_decode(const DgcDecodeArgs& args) { decode_messages(args, threads_); }

}  // namespace dgc
