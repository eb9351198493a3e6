#pragma once

#include <cstddef>

#include "kernels/dgc_args.h"

namespace dgc {

inline uint64_t message_bytes(const WireHeader& header) { return kWireHeaderBytes + header.payload_bytes; }

// Writes the header, with this step and the checksum, in front of a payload that is in place.
void seal_message(std::byte* message, WireHeader header, uint64_t step);

// Whether every byte of a message can be trusted, indices included. `want` says what it must be, with the worker; its
// checksum is not looked at.
WireFault check_message(const std::byte* message, const WireHeader& want, uint64_t step, const DgcTable& table);

}  // namespace dgc
