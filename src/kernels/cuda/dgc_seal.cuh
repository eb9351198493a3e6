// The checksum of a message (tensor/wire_types.h): every piece of the payload is hashed by XXH64, many pieces at once,
// and the checksum is the XXH64 of the header and of these hashes.
#pragma once

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/cuda/xxh64.cuh"

namespace dgc::cuda {

inline constexpr int kHeaderWords = static_cast<int>(kWireHeaderBytes / 8);  // the last one is the checksum
inline constexpr int kHashesPerWarp = 8;

// hashes[i] = the XXH64 of piece i of the payloads of `messages` messages, which lie one after another from `message`
// on. The seed of message m is seed_of(m).
template <typename Seed>
__device__ inline void hash_pieces(const std::byte* message, int messages, uint64_t payload_bytes, uint64_t* hashes,
                                   const Seed& seed_of) {
  const int64_t pieces = wire_pieces(payload_bytes), all = messages * pieces;
  const int64_t step = int64_t{gridDim.x} * kDgcWarps * kHashesPerWarp;
  for (int64_t first = (int64_t{blockIdx.x} * kDgcWarps + warp()) * kHashesPerWarp; first < all; first += step) {
    const int64_t i = first + lane() / 4;
    const bool inside = i < all;
    const int64_t m = inside ? i / pieces : 0, piece = inside ? i % pieces : 0;
    const auto at = static_cast<uint64_t>(piece) * kWirePiece;
    const uint64_t bytes = payload_bytes - at < kWirePiece ? payload_bytes - at : kWirePiece;
    const auto* words = reinterpret_cast<const uint64_t*>(
        message + static_cast<uint64_t>(m) * (kWireHeaderBytes + payload_bytes) + kWireHeaderBytes + at);
    const uint64_t hash = xxh64_by_four(inside ? static_cast<int64_t>(bytes / 8) : 0, seed_of(static_cast<int>(m)),
                                        [&](int64_t w) { return words[w]; });
    if (inside && lane() % 4 == 0) hashes[i] = hash;
  }
}

// The hash of the header's words and the pieces' hashes, computed by four threads. pieces < 0: this group has no
// message.
__device__ inline uint64_t message_checksum(const uint64_t* header, const uint64_t* hashes, int64_t pieces) {
  return xxh64_by_four(pieces < 0 ? 0 : kHeaderWords - 1 + pieces, pieces < 0 ? 0 : header[2],
                       [&](int64_t w) { return w < kHeaderWords - 1 ? header[w] : hashes[w - (kHeaderWords - 1)]; });
}

static_assert(offsetof(WireHeader, step) == 16 && offsetof(WireHeader, checksum) == 40);

// Writes the header, with this step and the checksum, to `message` and, unless it is null, to `copy`. One warp calls
// this when all pieces are hashed.
__device__ inline void write_header(WireHeader header, uint64_t step, const uint64_t* hashes, std::byte* message,
                                    std::byte* copy) {
  header.step = step;
  uint64_t words[kHeaderWords];
  memcpy(words, &header, sizeof(words));
  words[kHeaderWords - 1] = message_checksum(words, hashes, lane() < 4 ? wire_pieces(header.payload_bytes) : -1);
  if (lane() != 0) return;
#pragma unroll
  for (int i = 0; i < kHeaderWords; ++i) reinterpret_cast<uint64_t*>(message)[i] = words[i];
  if (copy == nullptr) return;
#pragma unroll
  for (int i = 0; i < kHeaderWords; ++i) reinterpret_cast<uint64_t*>(copy)[i] = words[i];
}

}  // namespace dgc::cuda
