#pragma once

#include <optional>
#include <string>

#include "optim/dgc/dgc.h"

namespace dgc {

// DgcOptions::bucket_bytes of so many MiB, at least 1.
int64_t bucket_bytes(double mib);

struct OverlapChoice {
  std::optional<int64_t> bucket_bytes;  // none: no overlap
  std::string text;                     // a sentence for the log; empty where only one process takes part
};

// Overlap where it hides something: between processes on CPUs, in buckets of at least so many MiB. Groups need all
// gradients first. Collective; the same on every rank.
OverlapChoice choose_overlap(const DgcOptions&, double bucket_mib, const OptimizerContext&, int64_t workers_per_group);

}  // namespace dgc
