#pragma once

#include <cstdint>
#include <functional>
#include <vector>

// What libsndfile does not tell about the header of a sound file, and what it must not be shown.
namespace dgc {

// A file of so many bytes. read() copies up to `count` bytes from position `at` on, and returns how many.
struct SoundBytes {
  uint64_t size = 0;
  std::function<size_t(uint64_t at, void* to, size_t count)> read;
};

// What libsndfile gets to see: `head`, and behind it `body_bytes` bytes of the file from position `body` on. Of a WAV
// these are the format and the samples. Names of titles, cue points and the like are left out, because libsndfile reads
// their lengths without checking them, and some lengths keep it busy for ever. Other files are seen as they are.
struct SoundParts {
  std::vector<uint8_t> head;
  uint64_t body = 0, body_bytes = 0;
  // Bytes of samples that a WAV's or SPHERE's header promises and that are not in the file: libsndfile would silently
  // read fewer samples. 0 if the header does not say, as in a WAV file that was written into a pipe, and for FLAC,
  // whose decoder reports missing bytes.
  uint64_t missing = 0;
};

bool is_sound(const SoundBytes&);  // whether the bytes begin like a WAV, FLAC or SPHERE file
// Whether it is a SPHERE file that Shorten has compressed: the bytes are then fewer than its header seems to promise.
bool is_shortened(const SoundBytes&);
SoundParts parts_of(const SoundBytes&);

}  // namespace dgc
