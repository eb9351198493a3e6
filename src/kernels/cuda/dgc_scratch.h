#pragma once

#include <cstdint>

#include "kernels/dgc_args.h"
#include "kernels/dgc_guess.h"

namespace dgc::cuda {

inline constexpr int kDgcThreads = 256;                                     // threads of a block in all DGC kernels
inline constexpr int kDgcStrip = 512;                                       // elements that a warp works on at a time
inline constexpr int kDgcStrips = static_cast<int>(kDgcBlock) / kDgcStrip;  // strips of a wire block

// Candidates of a segment are counted by magnitude, from the guess upwards: first in fine bins of 2^-13 of an octave,
// up to 1.23 to 1.375 times the guess, where the k-th largest nearly always is; then in coarse bins. The last bin takes
// all larger magnitudes. Up to kDgcTies candidates in the bin of the k-th largest are told apart one by one.
inline constexpr unsigned kDgcFineBins = 3072;
inline constexpr unsigned kDgcGuessBins = 4096;
inline constexpr int kDgcFineShift = 10, kDgcCoarseShift = 14;
inline constexpr unsigned kDgcTies = 1024;

// The radix selection takes 11, 10 and 10 bits of the magnitude.
inline constexpr int kDgcRadixBins = 2048 + 1024 + 1024;

// Room in the list of candidates: segment i starts at key first_block * kDgcKeysPerBlock + i * kDgcKeysPerSegment. The
// longest list is shorter than the CPU's, because its memory stays allocated.
inline constexpr int64_t kDgcListShare = 8;
inline constexpr int64_t kDgcKeysPerBlock = kDgcBlock / kDgcListShare;
inline constexpr int64_t kDgcKeysPerSegment = kSpareCandidates;

// Where a strip's candidates lie in its segment's list, and how many they are. They are in the order of indices.
struct DgcStripRecord {
  unsigned first, count;
};

// In the radix selection: how many elements of a block lie above the threshold, and how many equal it.
struct DgcBlockRecord {
  unsigned above, equal;
};

// What phase 2 of the compression finds out about a segment.
struct DgcSegmentRecord {
  unsigned usable;  // not 0: the list holds the k largest
  unsigned need;    // how many candidates in the bin of the k-th largest are among the k largest
  float lowest;  // a guess that would have given a list of the right length, or the guess itself where is_short is set
  unsigned is_short;  // not 0: the guess gave a list that is shorter than that
};

// Device memory of dgc_compress. Arrays marked "zero" are all zero before and after each call.
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
  unsigned* radix_histogram;   // zero [count * kDgcRadixBins]; used for segments that take the radix selection
  unsigned* drawn;             // zero: strips that were given to whichever warp was free
  unsigned* ticket;            // zero
};

// Device memory of dgc_encode.
struct DgcEncodeScratch {
  uint64_t* hashes;   // [pieces of the canonical payload]
  unsigned* largest;  // zero [count]: the largest finite magnitude of a segment, by its bits
  unsigned* ticket;   // zero
};

// What the words of a chunk (DgcCode::kChunk words) encode.
struct DgcChunkSum {
  unsigned long long entries;   // number of entries
  unsigned long long elements;  // run16: number of elements from the first word to the last entry or run
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
