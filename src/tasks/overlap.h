#pragma once

#include <cstdint>
#include <optional>

#include "config/options.h"
#include "optim/optimizer.h"

namespace dgc {

// DgcOptions::bucket_bytes as exchange.overlap says; "auto": between processes on CPUs, where it hides something.
// Collective; the same on every rank. Rank 0 logs what comes of "auto" between processes.
std::optional<int64_t> choose_bucket_bytes(const Config&, const OptimizerContext&);

}  // namespace dgc
