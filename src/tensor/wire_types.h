#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dgc {

// What configs, the folder that lays messages out (dist/wire.h) and the kernels that fill and read them must agree on.
// docs/wire_format.md has it all in words.

// Block of elements that one set of 16-bit offsets can address.
inline constexpr int64_t kDgcBlock = 65536;
constexpr int64_t dgc_blocks(int64_t numel) { return (numel + kDgcBlock - 1) / kDgcBlock; }

// How a message travels; the numbers are on the wire.
enum class WireValues : uint8_t { fp32 = 0, fp16 = 1, bf16 = 2, int8 = 3 };
enum class WireIndices : uint8_t { block16 = 0, int32 = 1, run16 = 2, rice = 3 };
inline constexpr std::array<std::string_view, 4> kWireValueNames = {"fp32", "fp16", "bf16", "int8"};
inline constexpr std::array<std::string_view, 4> kWireIndexNames = {"block16", "int32", "run16", "rice"};

constexpr int64_t wire_value_bytes(WireValues values) {
  return values == WireValues::fp32 ? 4 : values == WireValues::int8 ? 1 : 2;
}

struct WireFormat {
  WireValues values = WireValues::fp32;
  WireIndices indices = WireIndices::block16;
  bool operator==(const WireFormat&) const = default;
};

// How what is compressed travels: all workers' messages to everyone, or what they say summed on its way, as dense
// numbers. The sum is the same, bit for bit.
enum class Transport { automatic, sparse, dense };
inline constexpr std::array<std::string_view, 3> kTransportNames = {"auto", "sparse", "dense"};

// How messages come together: all of them with every worker, or shard by shard with its owner, who sends the largest
// sums to all.
enum class ExchangeAlgorithm { all_gather, split_reduce };
inline constexpr std::array<std::string_view, 2> kExchangeAlgorithmNames = {"all_gather", "split_reduce"};

// "sparse", "dense" or "split_reduce": how what is compressed travels in one step.
constexpr std::string_view travel_name(Transport transport, bool is_split) {
  return is_split ? kExchangeAlgorithmNames[1] : kTransportNames[static_cast<size_t>(transport)];
}

// How biases, and scale and shift of BatchNorm travel (ParamLayout's small tensors): each on its own as it is, or in
// fp16, or all together as one more compressed tensor.
enum class SmallTensors { dense, dense_fp16, sparse };

// The canonical form: dgc_compress makes it, dgc_apply reads it and every checksum is over it. Other formats are made
// from it just before a message travels, and turned back into it on arrival.
inline constexpr WireFormat kCanonicalWire{};

inline constexpr uint32_t kWireMagic = 0x4d434744;  // "DGCM"
inline constexpr uint16_t kWireVersion = 3;
// Bytes of payload that are hashed on their own, so that many can be at once.
inline constexpr uint64_t kWirePiece = 1024;
constexpr int64_t wire_pieces(uint64_t payload_bytes) {
  return static_cast<int64_t>((payload_bytes + kWirePiece - 1) / kWirePiece);
}

// The first bytes of every message. They do not change with the form that it travels in: payload_bytes and checksum are
// the canonical payload's.
struct WireHeader {
  uint32_t magic = kWireMagic;
  uint16_t version = kWireVersion;
  WireValues values = WireValues::fp32;  // with `indices`: the form in which it travels
  WireIndices indices = WireIndices::block16;
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
enum class WireFaultKind : uint32_t { none, magic, version, format, checksum, stale, worker, layout, indices };

struct WireFault {
  WireFaultKind kind = WireFaultKind::none;
  uint32_t worker = 0;  // whose message it should have been
  uint64_t found = 0;   // the version, format, step or worker that it holds instead; the tensor with the bad indices
};

// A format as a fault's `found`: both of the header's bytes.
constexpr uint64_t wire_format_code(WireValues values, WireIndices indices) {
  return static_cast<uint64_t>(values) | static_cast<uint64_t>(indices) << 8;
}

}  // namespace dgc
