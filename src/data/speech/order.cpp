#include "data/speech/order.h"

#include <algorithm>

#include "tensor/errors.h"
#include "tensor/rng.h"

namespace dgc {

std::vector<int32_t> bucketed_order(const Sampling& s, const BucketOptions& o, int64_t epoch) {
  DGC_CHECK(o.bucket_batches >= 1, "batches in a bucket");
  const int64_t batch = s.global_batch(), steps = s.steps_per_epoch(), used = steps * batch;
  const auto number = static_cast<uint64_t>(epoch);
  std::vector<int32_t> chosen = permutation(s.samples, s.seed, rng_stream("shuffle", number));
  chosen.resize(static_cast<size_t>(used));

  const bool sorted = epoch < o.sorted_epochs;
  const int64_t bucket = sorted ? used : o.bucket_batches * batch;
  for (int64_t first = 0; first < used; first += bucket) {
    std::sort(chosen.begin() + first, chosen.begin() + std::min(first + bucket, used));
  }

  std::vector<int32_t> batches = permutation(steps, s.seed, rng_stream("shuffle batches", number));
  if (sorted) std::sort(batches.begin(), batches.end());
  std::vector<int32_t> order;
  order.reserve(chosen.size());
  for (const int32_t b : batches) {
    for (int64_t worker = 0; worker < s.workers; ++worker) {
      for (int64_t i = worker; i < batch; i += s.workers) order.push_back(chosen[static_cast<size_t>(b * batch + i)]);
    }
  }
  return order;
}

}  // namespace dgc
