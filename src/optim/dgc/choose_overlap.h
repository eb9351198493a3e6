#pragma once

#include <optional>
#include <string>

#include "optim/dgc/dgc.h"

namespace dgc {

// The value of DgcOptions::bucket_bytes for buckets of `mib` MiB; at least 1.
int64_t bucket_bytes(double mib);

struct OverlapChoice {
  std::optional<int64_t> bucket_bytes;  // none: no overlap
  std::string text;                     // a sentence for the log; empty where only one process takes part
};

// Decides whether the exchange overlaps the backward pass, in buckets of at least `bucket_mib` MiB: only between
// processes on CPUs, where overlap hides communication, and never with groups of workers, which need all gradients
// first. Collective. Every rank gets the same answer.
OverlapChoice choose_overlap(const DgcOptions&, double bucket_mib, const OptimizerContext&, int64_t workers_per_group);

}  // namespace dgc
