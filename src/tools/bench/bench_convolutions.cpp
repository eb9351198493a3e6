#include <vector>

#include "config/model_types.h"
#include "tasks/task.h"
#include "tools/bench/bench.h"
#include "tools/planned_rank.h"
#include "train/ranks/rank_backend.h"

namespace dgc {

ConvTimings bench_convolutions(const Config& config) {
  const Network network = make_network(config.model, task_of(config).sample(config, Split::train));
  PlannedRank rank(config, network);
  rank.step();
  const std::vector<PlannedConv> convolutions(rank.convolutions().begin(), rank.convolutions().end());
  return time_convolutions(config.device, fp32_math(config), convolutions);
}

}  // namespace dgc
