#pragma once

#include <cstdint>

namespace dgc {

// What the kernels that fill and read a message and the folder that carries it must agree on (dist/wire.h).

// Block of elements that one set of 16-bit offsets can address.
inline constexpr int64_t kDgcBlock = 65536;

enum class WireValues : uint16_t { fp32 = 0, fp16 = 1 };  // the numbers are on the wire

constexpr int64_t wire_value_bytes(WireValues values) { return values == WireValues::fp32 ? 4 : 2; }
constexpr int64_t dgc_blocks(int64_t numel) { return (numel + kDgcBlock - 1) / kDgcBlock; }

inline constexpr uint32_t kWireMagic = 0x4d434744;  // "DGCM"
inline constexpr uint16_t kWireVersion = 2;
// Bytes of payload that are hashed on their own, so that many can be at once.
inline constexpr uint64_t kWirePiece = 1024;
constexpr int64_t wire_pieces(uint64_t payload_bytes) {
  return static_cast<int64_t>((payload_bytes + kWirePiece - 1) / kWirePiece);
}

// The first bytes of every message.
struct WireHeader {
  uint32_t magic = kWireMagic;
  uint16_t version = kWireVersion;
  uint16_t values = 0;  // WireValues
  uint32_t worker = 0;
  uint32_t tensors = 0;
  uint64_t step = 0;
  uint64_t payload_bytes = 0;
  uint64_t entries = 0;  // sum of k
  uint64_t checksum =
      0;  // XXH64, seeded with `step`, of: the header up to here, then the XXH64 of every piece of the payload
};
inline constexpr uint64_t kWireHeaderBytes = sizeof(WireHeader);
static_assert(kWireHeaderBytes == 48);

// Why a message cannot be used. Whoever reads it checks in this order.
enum class WireFaultKind : uint32_t { none, magic, version, checksum, stale, worker, layout, indices };

struct WireFault {
  WireFaultKind kind = WireFaultKind::none;
  uint32_t worker = 0;  // whose message it should have been
  uint64_t found = 0;   // the version, step or worker that it holds instead; the tensor with the bad indices
};

}  // namespace dgc
