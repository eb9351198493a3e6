#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"

// What a step would take on a network: the measured step of one worker, and a model of the exchange, as in the paper
// (section 5, after Wen et al. 2017). docs/exchange.md has formulas and limits.
namespace dgc {

// Between any two workers, all at once and in both directions.
struct Link {
  double bits_per_second = 0;
  double latency_seconds = 0;  // of each message
};

// What reaches one worker, one message after another.
struct Traffic {
  double bytes = 0;
  double messages = 0;
  double seconds(const Link& link) const { return 8 * bytes / link.bits_per_second + messages * link.latency_seconds; }
};

// Every worker's `bytes` to all.
Traffic gather_traffic(int64_t workers, double bytes);
// A sum: everyone's parts of one shard to each worker, and the shards of the sum to all. `bytes`: what a worker sums.
Traffic sum_traffic(int64_t workers, double bytes);

// A step of the config's model, in each way to exchange gradients. The last has the config's sparsity, after warm-up.
struct StepTraffic {
  Traffic dense, half, dgc;
  Transport transport = Transport::sparse;  // of dgc
  bool split = false;                       // sparse, but split and reduced
};
StepTraffic step_traffic(const Config&, int64_t workers);

struct Projected {
  double seconds = 0;   // of a step: computing, then the exchange
  double speed_up = 0;  // workers * step of one worker / seconds
};

struct ProjectionRow {
  int64_t workers = 0;
  Projected dense, half, dgc;
  Transport transport = Transport::sparse;
  bool split = false;
};

// Rows for 2, 4, ... 1024 workers, as far as they form whole groups, and for those asked for, without repeats, in
// order.
std::vector<ProjectionRow> project(const Config&, const std::vector<int64_t>& workers, const Link&,
                                   double step_seconds);

}  // namespace dgc
