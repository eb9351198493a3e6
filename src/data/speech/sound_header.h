#pragma once

#include <cstdint>
#include <span>

// What libsndfile does not say of a sound file's first bytes.
namespace dgc {

// Whether the bytes begin like a WAV, FLAC or SPHERE file.
bool is_sound(std::span<const uint8_t> bytes);

// Bytes of samples that a WAV's or SPHERE's header promises and that are not in the file, which libsndfile would
// silently shorten. 0 where the header does not say, as in a WAV that was written into a pipe, and for FLAC, whose
// reader knows.
uint64_t missing_bytes(std::span<const uint8_t> file);

}  // namespace dgc
