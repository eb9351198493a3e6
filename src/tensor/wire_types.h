#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dgc {

// What configs, the layout of messages (dist/wire.h) and the kernels that write and read messages must agree on.
// docs/wire_format.md explains the format.

// The number of elements in a block: a 16-bit offset addresses one of them.
inline constexpr int64_t kDgcBlock = 65536;
constexpr int64_t dgc_blocks(int64_t numel) { return (numel + kDgcBlock - 1) / kDgcBlock; }

// How values and indices are encoded in a message that travels. The header holds these numbers.
enum class WireValues : uint8_t { fp32 = 0, fp16 = 1, bf16 = 2, int8 = 3 };
enum class WireIndices : uint8_t { block16 = 0, int32 = 1, run16 = 2, rice = 3 };
inline constexpr std::array<std::string_view, 4> kWireValueNames = {"fp32", "fp16", "bf16", "int8"};
inline constexpr std::array<std::string_view, 4> kWireIndexNames = {"block16", "int32", "run16", "rice"};

constexpr int64_t wire_value_bytes(WireValues values) {
  switch (values) {
    case WireValues::fp32:
      return 4;
    case WireValues::fp16:
    case WireValues::bf16:
      return 2;
    case WireValues::int8:
      return 1;
  }
  return 0;
}

// Whether a tensor's values are multiples of a scale, which travels with them.
constexpr bool has_scale(WireValues values) { return values == WireValues::int8; }

struct WireFormat {
  WireValues values = WireValues::fp32;
  WireIndices indices = WireIndices::block16;
  bool operator==(const WireFormat&) const = default;
};

// How compressed gradients travel. sparse: every worker gets the messages of all workers. dense: the messages become
// arenas of dense numbers, which are summed on the way. Both give the same sum, bit for bit. automatic chooses by
// bytes.
enum class Transport { automatic, sparse, dense };
inline constexpr std::array<std::string_view, 3> kTransportNames = {"auto", "sparse", "dense"};

// How sparse messages are summed. all_gather: every worker gets all messages and sums them. split_reduce: every worker
// owns a shard, sums what all workers sent for its shard, and sends the largest sums to all workers.
enum class ExchangeAlgorithm { all_gather, split_reduce };
inline constexpr std::array<std::string_view, 2> kExchangeAlgorithmNames = {"all_gather", "split_reduce"};

// The way that one step's compressed gradients go, as the transport and the algorithm together decide it, and its name
// in metrics and plans.
enum class Travel { sparse, dense, split_reduce };
constexpr std::string_view travel_name(Travel travel) {
  return std::array<std::string_view, 3>{"sparse", "dense", "split_reduce"}[static_cast<size_t>(travel)];
}

// How the small tensors of ParamLayout travel (biases, and scale and shift of BatchNorm). dense: as fp32. dense_fp16:
// as fp16, where the rounding error is kept for the next step. sparse: together, as one more compressed tensor.
enum class SmallTensors { dense, dense_fp16, sparse };

// The canonical format: dgc_compress writes it, dgc_apply reads it, and every checksum covers it. A message that
// travels in another format is converted just before it is sent, and converted back on arrival.
inline constexpr WireFormat kCanonicalWire{};

inline constexpr uint32_t kWireMagic = 0x4d434744;  // "DGCM"
inline constexpr uint16_t kWireVersion = 3;
// The payload is hashed in pieces of this many bytes, so that many pieces can be hashed at the same time.
inline constexpr uint64_t kWirePiece = 1024;
constexpr int64_t wire_pieces(uint64_t payload_bytes) {
  return static_cast<int64_t>((payload_bytes + kWirePiece - 1) / kWirePiece);
}

// The first 48 bytes of every message. payload_bytes and checksum describe the canonical payload, in whatever format
// the message travels.
struct WireHeader {
  uint32_t magic = kWireMagic;
  uint16_t version = kWireVersion;
  WireValues values = WireValues::fp32;  // values and indices are the format in which the message travels
  WireIndices indices = WireIndices::block16;
  uint32_t worker = 0;
  uint32_t tensors = 0;
  uint64_t step = 0;
  uint64_t payload_bytes = 0;
  uint64_t entries = 0;  // sum of k
  // XXH64, seeded with `step`, of the header up to here followed by the XXH64 of every piece of the payload.
  uint64_t checksum = 0;
};
inline constexpr uint64_t kWireHeaderBytes = sizeof(WireHeader);
static_assert(kWireHeaderBytes == 48);

// Why a message cannot be used. Readers check for these faults in this order.
enum class WireFaultKind : uint32_t { none, magic, version, format, checksum, stale, worker, layout, indices };

struct WireFault {
  WireFaultKind kind = WireFaultKind::none;
  uint32_t worker = 0;  // the worker whose message was expected
  uint64_t found = 0;   // the message's version, format, step or worker, or the number of the tensor with bad indices
};

// A format as one number for WireFault::found, made of the header's two format bytes.
constexpr uint64_t wire_format_code(WireValues values, WireIndices indices) {
  return static_cast<uint64_t>(values) | static_cast<uint64_t>(indices) << 8;
}

}  // namespace dgc
