#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"

// The time that a step would take on a network: the measured step of one worker, and a model of the exchange, as in the
// paper (section 5, after Wen et al. 2017). docs/exchange.md has formulas and limits.
namespace dgc {

// The connection between any two workers; all connections work at once and in both directions.
struct Link {
  double bits_per_second = 0;
  double latency_seconds = 0;  // added to each message
};

// The data that reaches one worker, one message after another.
struct Traffic {
  double bytes = 0;
  double messages = 0;
  double seconds(const Link& link) const { return 8 * bytes / link.bits_per_second + messages * link.latency_seconds; }
};

// An all-gather of `bytes` from every worker.
Traffic gather_traffic(int64_t workers, double bytes);
// An all-reduce of `bytes`: each worker receives one shard from all others and adds it up, then receives the other
// shards of the sum.
Traffic sum_traffic(int64_t workers, double bytes);

// Traffic of a step of the config's model, for each way to exchange gradients. `dgc` and `own` are at the config's
// sparsity after warm-up; with exchange.every_steps above 1 they are the share of one step in an exchange. `own` is
// what the config itself does.
struct StepTraffic {
  Traffic dense, half, dgc, own;
  Travel travel = Travel::sparse;  // how dgc's compressed tensors travel
};
// Throws UserError as plan_phases() does.
StepTraffic step_traffic(const Config&, int64_t workers);

struct Projected {
  double seconds = 0;   // time of a step: computing, then the exchange
  double speed_up = 0;  // workers * step of one worker / seconds
};

struct ProjectionRow {
  int64_t workers = 0;
  Projected dense, half, dgc;
  Travel travel = Travel::sparse;
};

// Rows for 2, 4, ... 1024 workers, as far as they form whole groups, and for the requested numbers of workers, without
// repeats, in ascending order. Throws UserError as plan_phases() does.
std::vector<ProjectionRow> project(const Config&, const std::vector<int64_t>& workers, const Link&,
                                   double step_seconds);

}  // namespace dgc
