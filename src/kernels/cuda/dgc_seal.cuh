// Seals a message with its checksum (tensor/wire_types.h): every piece of the payload is hashed by XXH64, many pieces
// at once, and the checksum is the XXH64 of the header and of these hashes.
#pragma once

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/cuda/xxh64.cuh"

namespace dgc::cuda {

inline constexpr int kHeaderWords = static_cast<int>(kWireHeaderBytes / 8);  // the last one is the checksum

__device__ inline int64_t words_of_piece(uint64_t payload_bytes, int64_t piece) {
  const auto left = static_cast<int64_t>(payload_bytes) - piece * int64_t{kWirePiece};
  return smaller(left, int64_t{kWirePiece}) / 8;
}

// hashes[i] = the XXH64 of piece i of the message's payload, with the seed `step`.
__device__ inline void hash_payload(const std::byte* message, uint64_t payload_bytes, uint64_t step, uint64_t* hashes) {
  each_by_warp(wire_pieces(payload_bytes), [&](int64_t i) {
    const auto* words = reinterpret_cast<const uint64_t*>(message + kWireHeaderBytes) + i * int64_t{kWirePiece / 8};
    const uint64_t hash = xxh64_by_warp(words_of_piece(payload_bytes, i), step, [&](int64_t w) { return words[w]; });
    if (lane() == 0) hashes[i] = hash;
  });
}

// Word i of what the checksum is the hash of.
__device__ inline uint64_t checked_word(const uint64_t* header, const uint64_t* hashes, int64_t i) {
  return i < kHeaderWords - 1 ? header[i] : hashes[i - (kHeaderWords - 1)];
}

static_assert(offsetof(WireHeader, step) == 16 && offsetof(WireHeader, checksum) == 40);

// Writes the header, with this step and the checksum, to `message` and, unless it is null, to `copy`. One warp calls
// this when all pieces are hashed.
__device__ inline void write_header(WireHeader header, uint64_t step, const uint64_t* hashes, std::byte* message,
                                    std::byte* copy) {
  header.step = step;
  uint64_t words[kHeaderWords];
  memcpy(words, &header, sizeof(words));
  words[kHeaderWords - 1] = xxh64_by_warp(kHeaderWords - 1 + wire_pieces(header.payload_bytes), step,
                                          [&](int64_t i) { return checked_word(words, hashes, i); });
  if (lane() != 0) return;
#pragma unroll
  for (int i = 0; i < kHeaderWords; ++i) reinterpret_cast<uint64_t*>(message)[i] = words[i];
  if (copy == nullptr) return;
#pragma unroll
  for (int i = 0; i < kHeaderWords; ++i) reinterpret_cast<uint64_t*>(copy)[i] = words[i];
}

}  // namespace dgc::cuda
