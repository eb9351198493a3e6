#include <vector>

#include "tools/bench/bench.h"
#include "tools/planned_rank.h"
#include "train/ranks/rank_backend.h"

namespace dgc {

ConvTimings bench_convolutions(const Config& config, const ConvTimed& timed) {
  PlannedRank rank(config);
  rank.step();
  const std::vector<PlannedConv> convolutions(rank.convolutions().begin(), rank.convolutions().end());
  return time_convolutions(config.device, fp32_math(config), convolutions, timed);
}

}  // namespace dgc
