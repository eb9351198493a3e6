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

// The order of an epoch for a Sampler whose samples are numbered from the shortest to the longest. The samples are
// shuffled by (seed, epoch), the rest that fills no global batch is dropped, and the others are cut into buckets. Each
// bucket is sorted and cut into global batches of neighbours, so that little padding is needed. The batches of all
// buckets are shuffled. The samples of a global batch are dealt to the workers in turn, so that no worker always has
// the longest. Throws UserError if an epoch has no whole global batch.
std::vector<int32_t> bucketed_order(const Sampling&, const BucketOptions&, int64_t epoch);

}  // namespace dgc
