#pragma once

#include <cstdint>
#include <span>

// What libsndfile does not tell about the header of a sound file.
namespace dgc {

// Whether the bytes begin like a WAV, FLAC or SPHERE file.
bool is_sound(std::span<const uint8_t> bytes);

// Bytes of samples that a WAV's or SPHERE's header promises and that are not in the file: libsndfile would silently
// read fewer samples. 0 if the header does not say, as in a WAV file that was written into a pipe, and for FLAC, whose
// decoder reports missing bytes.
uint64_t missing_bytes(std::span<const uint8_t> file);

}  // namespace dgc
