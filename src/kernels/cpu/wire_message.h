#pragma once

#include <cstddef>

#include "kernels/dgc_args.h"

namespace dgc {

inline uint64_t message_bytes(const WireHeader& header) { return kWireHeaderBytes + header.payload_bytes; }

// Writes the header, with this step and the checksum, in front of a payload that is complete.
void seal_message(std::byte* message, WireHeader header, uint64_t step);

// One block's entries in a canonical message whose bytes can be trusted.
struct BlockEntries {
  const uint16_t* offsets;
  const float* values;
  uint32_t begin, end;
};

inline BlockEntries entries_of(const std::byte* message, const DgcSegment& s, int64_t block) {
  const std::byte* payload = message + kWireHeaderBytes;
  const auto* ends = reinterpret_cast<const uint32_t*>(payload + s.block_ends_at);
  return {reinterpret_cast<const uint16_t*>(payload + s.offsets_at),
          reinterpret_cast<const float*>(payload + s.values_at), block == 0 ? 0 : ends[block - 1], ends[block]};
}

// What Backend::dgc_encode and Backend::dgc_decode do, for callers that have no backend.
void encode_message(const DgcEncodeArgs& args, int threads);
void decode_messages(const DgcDecodeArgs& args, int threads);

// Checks every byte of a message, with its indices. `want` is the header that the message must have; the checksum in
// `want` is not used.
WireFault check_message(const std::byte* message, const WireHeader& want, uint64_t step, const DgcTable& table);

// True where ops must change nothing: in a skipped step, and in all steps after a message that could not be used.
inline bool nothing_to_do(const StepControl& control) {
  return control.skip != 0 || control.fault.kind != WireFaultKind::none;
}

// message_of() is one worker's message. may_apply() checks the messages of all workers, whose headers must agree with
// args.header. If a message cannot be used, it sets args.control->fault for the first such message and returns false.
inline const std::byte* message_of(const DgcApplyArgs& args, int32_t worker) {
  return args.messages + static_cast<uint64_t>(worker) * message_bytes(args.header);
}
bool may_apply(const DgcApplyArgs& args);

}  // namespace dgc
