#pragma once

#include <cstdint>
#include <vector>

#include "data/sampling.h"

namespace dgc {

struct BucketOptions {
  int64_t bucket_batches = 16;  // global batches that are sorted by length together
  int64_t sorted_epochs = 1;    // the first epochs go from the shortest batch to the longest (Amodei et al., "Deep
                                // Speech 2", 2015, section 3.2: CTC starts more steadily on short utterances)
  bool operator==(const BucketOptions&) const = default;
};

// An epoch's order for a Sampler, of samples that are numbered from the shortest to the longest. A shuffle by (seed,
// epoch) drops the rest that fills no global batch, and fills buckets; each is sorted and cut into global batches of
// neighbours, so that padding is little. The batches of all buckets are shuffled. In a global batch the workers take
// turns, so that none always has the longest.
std::vector<int32_t> bucketed_order(const Sampling&, const BucketOptions&, int64_t epoch);

}  // namespace dgc
