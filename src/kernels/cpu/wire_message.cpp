#include "kernels/cpu/wire_message.h"

#define XXH_STATIC_LINKING_ONLY  // a state on the stack: a step allocates nothing
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace dgc {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and is written by memcpy");

// payload_bytes: the memory of a message has as many bytes as were expected, whatever the header claims.
uint64_t checksum_of(const WireHeader& header, const std::byte* payload, uint64_t payload_bytes) {
  XXH64_state_t state;
  XXH64_reset(&state, header.step);
  XXH64_update(&state, &header, offsetof(WireHeader, checksum));
  for (uint64_t at = 0; at < payload_bytes; at += kWirePiece) {
    const uint64_t piece = XXH64(payload + at, std::min(kWirePiece, payload_bytes - at), header.step);
    XXH64_update(&state, &piece, sizeof(piece));
  }
  return XXH64_digest(&state);
}

bool indices_are_sound(const DgcSegment& s, const std::byte* payload) {
  int64_t begin = 0;
  for (int64_t b = 0; b < s.blocks(); ++b) {
    uint32_t end = 0;
    std::memcpy(&end, payload + s.block_ends_at + 4 * b, sizeof(end));
    if (end < begin || end > s.k) return false;
    const int64_t block_numel = std::min(kDgcBlock, s.numel - b * kDgcBlock);
    int64_t previous = -1;
    for (; begin < end; ++begin) {
      uint16_t offset = 0;
      std::memcpy(&offset, payload + s.offsets_at + 2 * begin, sizeof(offset));
      if (offset <= previous || offset >= block_numel) return false;
      previous = offset;
    }
  }
  return begin == s.k;
}

}  // namespace

void seal_message(std::byte* message, WireHeader header, uint64_t step) {
  header.step = step;
  header.checksum = checksum_of(header, message + kWireHeaderBytes, header.payload_bytes);
  std::memcpy(message, &header, sizeof(header));
}

WireFault check_message(const std::byte* message, const WireHeader& want, uint64_t step, const DgcTable& table) {
  const auto fault = [&](WireFaultKind kind, uint64_t found = 0) { return WireFault{kind, want.worker, found}; };
  WireHeader got;
  std::memcpy(&got, message, sizeof(got));
  const std::byte* payload = message + kWireHeaderBytes;
  if (got.magic != want.magic) return fault(WireFaultKind::magic);
  if (got.version != want.version) return fault(WireFaultKind::version, got.version);
  if (got.values != want.values || got.indices != want.indices) {
    return fault(WireFaultKind::format, wire_format_code(got.values, got.indices));
  }
  if (got.checksum != checksum_of(got, payload, want.payload_bytes)) return fault(WireFaultKind::checksum);
  if (got.step != step) return fault(WireFaultKind::stale, got.step);
  if (got.worker != want.worker) return fault(WireFaultKind::worker, got.worker);
  if (got.tensors != want.tensors || got.payload_bytes != want.payload_bytes || got.entries != want.entries) {
    return fault(WireFaultKind::layout);
  }
  for (int32_t i = 0; i < table.count; ++i) {
    if (!indices_are_sound(table.segments[i], payload)) return fault(WireFaultKind::indices, static_cast<uint64_t>(i));
  }
  return {};
}

bool may_apply(const DgcApplyArgs& args) {
  StepControl& control = *args.control;
  WireHeader want = args.header;
  for (int32_t worker = 0; worker < args.workers && !nothing_to_do(control); ++worker) {
    want.worker = static_cast<uint32_t>(worker);
    control.fault = check_message(message_of(args, worker), want, control.step, args.table);
  }
  return !nothing_to_do(control);
}

}  // namespace dgc
