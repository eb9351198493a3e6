#pragma once

#include <cstdint>

#include "kernels/dgc_args.h"

namespace dgc::cuda {

inline constexpr int kDgcThreads = 256;                                     // of a block, in both kernels
inline constexpr int kDgcStrip = 512;                                       // elements that a warp moves on at once
inline constexpr int kDgcStrips = static_cast<int>(kDgcBlock) / kDgcStrip;  // of a wire block

// Candidates of a segment are counted by magnitude, from the guess upwards: first in fine bins of 2^-13 of an octave,
// up to 1.375 times the guess, where the k-th largest nearly always is; then in coarse ones. The last takes all the
// rest. Up to kDgcTies candidates in the bin of the k-th largest are told apart one by one.
inline constexpr unsigned kDgcFineBins = 3072;
inline constexpr unsigned kDgcGuessBins = 4096;
inline constexpr int kDgcFineShift = 10, kDgcCoarseShift = 14;
inline constexpr unsigned kDgcTies = 1024;

// The radix selection takes 11, 10 and 10 bits of the magnitude.
inline constexpr int kDgcRadixBins = 2048 + 1024 + 1024;

// Room in the list of candidates: in front of segment i lie first_block * kDgcKeysPerBlock + i * kDgcKeysPerSegment
// keys.
inline constexpr int64_t kDgcKeysPerBlock = kDgcBlock / 8;
inline constexpr int64_t kDgcKeysPerSegment = 256;

// A strip's candidates in its segment's list, in index order. Where the radix selection is at work: how many elements
// lie above the threshold, and how many on it.
struct DgcStripRecord {
  unsigned first, count;
};

struct DgcBlockRecord {
  unsigned above, equal;
};

// What phase 2 of the compression finds out about a segment.
struct DgcSegmentRecord {
  unsigned usable;    // the list holds the k largest
  unsigned need;      // so many of the bin with the k-th largest are among them
  float lowest;       // a guess that would have given a list of the right length ...
  unsigned is_short;  // ... or the one that was made, if it gave a shorter one
};

// Device memory of dgc_compress. What is "zero" is so before and after each call.
struct DgcCompressScratch {
  uint64_t* keys;
  DgcStripRecord* strips;      // [blocks * kDgcStrips]
  unsigned* sure;              // [blocks] candidates in bins above the k-th largest's
  DgcBlockRecord* counts;      // [blocks] for the radix selection
  DgcSegmentRecord* segments;  // [count]
  uint64_t* tie_keys;          // [count * kDgcTies]
  uint64_t* hashes;            // [pieces of the payload]
  unsigned* collected;         // zero [count]
  unsigned* ties;              // zero [count]
  unsigned* guess_histogram;   // zero [count * kDgcGuessBins]
  unsigned* radix_histogram;   // zero [count * kDgcRadixBins]; only touched where the radix selection was at work
  unsigned* ticket;            // zero
};

// Device memory of dgc_encode.
struct DgcEncodeScratch {
  uint64_t* hashes;   // [pieces of the canonical payload]
  unsigned* largest;  // zero [count]: the largest finite magnitude of a segment, by its bits
  unsigned* ticket;   // zero
};

// What the words of a chunk amount to (DgcCode::kChunk of them).
struct DgcChunkSum {
  unsigned long long entries;
  unsigned long long elements;  // run16: how far they lead
};

// Device memory of dgc_decode.
struct DgcDecodeScratch {
  DgcChunkSum* sums;  // [workers * chunks]
};

// Device memory of dgc_apply.
struct DgcApplyScratch {
  uint64_t* hashes;           // [workers * pieces]
  unsigned long long* fault;  // zero: the largest of all messages' fault codes
  unsigned* ticket;           // zero
};

}  // namespace dgc::cuda
