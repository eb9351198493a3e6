#include "tools/projection.h"

#include <set>

#include "kernels/backend.h"
#include "optim/dgc/layout.h"
#include "tasks/make.h"
#include "tools/planned_rank.h"

namespace dgc {
namespace {

constexpr int64_t kMostWorkers = 1024;

Traffic operator+(const Traffic& a, const Traffic& b) { return {a.bytes + b.bytes, a.messages + b.messages}; }
Traffic operator/(const Traffic& a, double by) { return {a.bytes / by, a.messages / by}; }

// Traffic of the tensors that are not compressed.
Traffic small_traffic(const DgcLayout& layout, SmallTensors small, int64_t workers) {
  if (layout.dense_numel == 0) return {};
  const auto bytes = static_cast<double>(layout.dense_bytes);
  if (small == SmallTensors::dense) return sum_traffic(workers, bytes);
  // Shards arrive in fp16 and their sums in fp32.
  return workers > 2 ? sum_traffic(workers, bytes * 3 / 2) : gather_traffic(workers, bytes);
}

// Traffic of the compressed tensors between `workers` workers, or groups of workers.
Traffic compressed_traffic(const DgcLayout& layout, int64_t workers) {
  if (layout.travel == Travel::dense) return sum_traffic(workers, 4 * static_cast<double>(layout.compressed_numel));
  if (!layout.split) return gather_traffic(workers, static_cast<double>(layout.wire.message_bytes()));
  return {static_cast<double>(layout.split->received_bytes()), 2 * static_cast<double>(workers - 1)};
}

StepTraffic traffic_of(const ParamLayout& params, const Config& config, int64_t workers) {
  const auto numel = static_cast<double>(params.parameters());
  const auto steps = static_cast<double>(config.exchange.every_steps);
  const int64_t groups = compressing_workers(config, workers);
  const DgcLayout layout = make_dgc_layout(params, make_dgc_options(config), config.optimizer.sparsity.final, groups);
  const Traffic shares = gather_traffic(workers, sizeof(WorkerShare));
  const Traffic exchange =
      shares + compressed_traffic(layout, groups) + small_traffic(layout, config.optimizer.dgc.small_tensors, groups);
  StepTraffic traffic{.dense = shares + sum_traffic(workers, 4 * numel),
                      .half = shares + sum_traffic(workers, 2 * numel),
                      .dgc = exchange / steps,
                      .own = {},
                      .travel = layout.travel};
  const Traffic& dense = config.exchange.dense_values == DenseValues::fp16 ? traffic.half : traffic.dense;
  traffic.own = compresses(config.optimizer.type) ? traffic.dgc : dense / steps;
  return traffic;
}

ParamLayout params_of(const Config& config) { return ParamLayout(trained_specs(planned_network(config).params())); }

}  // namespace

Traffic gather_traffic(int64_t workers, double bytes) {
  const auto others = static_cast<double>(workers - 1);
  return {others * bytes, others};
}

Traffic sum_traffic(int64_t workers, double bytes) {
  const auto others = static_cast<double>(workers - 1);
  return {2 * others * bytes / static_cast<double>(workers), 2 * others};
}

StepTraffic step_traffic(const Config& config, int64_t workers) {
  return traffic_of(params_of(config), config, workers);
}

std::vector<ProjectionRow> project(const Config& config, const std::vector<int64_t>& workers, const Link& link,
                                   double step_seconds) {
  std::set<int64_t> counts(workers.begin(), workers.end());
  for (int64_t n = 2; n <= kMostWorkers; n *= 2) {
    if (n % config.exchange.workers_per_group == 0) counts.insert(n);
  }
  const ParamLayout params = params_of(config);
  std::vector<ProjectionRow> rows;
  for (const int64_t n : counts) {
    const auto projected = [&](const Traffic& traffic) -> Projected {
      const double seconds = step_seconds + traffic.seconds(link);
      return {seconds, static_cast<double>(n) * step_seconds / seconds};
    };
    const StepTraffic traffic = traffic_of(params, config, n);
    rows.push_back({.workers = n,
                    .dense = projected(traffic.dense),
                    .half = projected(traffic.half),
                    .dgc = projected(traffic.dgc),
                    .travel = traffic.travel});
  }
  return rows;
}

}  // namespace dgc
