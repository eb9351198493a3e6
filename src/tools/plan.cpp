#include "tools/plan.h"

#include <algorithm>

#include "dist/wire_sizes.h"
#include "optim/dgc/layout.h"
#include "tasks/make.h"
#include "tasks/task.h"
#include "tools/planned_rank.h"

namespace dgc {
namespace {

// A tensor's part of a payload, with the gap behind that part.
int64_t part_bytes(const WireLayout& wire, size_t tensor) {
  const auto tensors = wire.tensors();
  const size_t end = tensor + 1 < tensors.size() ? tensors[tensor + 1].high_at : wire.payload_bytes();
  return static_cast<int64_t>(end - tensors[tensor].high_at);
}

// The layout of messages in format `wire`, whatever transport is configured.
DgcLayout message_layout(const ParamLayout& params, const Config& config, double sparsity, WireFormat wire) {
  DgcOptions options = make_dgc_options(config);
  options.wire = wire;
  options.transport = Transport::automatic;
  return make_dgc_layout(params, options, sparsity);
}

// Adds the sizes of the layout's segment `which` to a row.
PlanRow compressed_row(PlanRow row, const DgcLayout& layout, size_t which) {
  row.kept = layout.wire.tensors()[which].k;
  row.paper_bytes = paper48_bytes(row.kept);
  row.sent_bytes = part_bytes(layout.wire, which);
  return row;
}

void plan_tensors(const ParamLayout& params, const Config& config, Plan& plan) {
  const DgcLayout layout = message_layout(params, config, plan.sparsity, config.optimizer.dgc.wire);
  const bool small_are_one = config.optimizer.dgc.small_tensors == SmallTensors::sparse;
  size_t next = 0;
  for (int i = 0; i < params.size(); ++i) {
    PlanRow row{.name = params.spec(i).name, .shape = params.spec(i).shape, .parameters = params.numel(i)};
    if (row.parameters == 0 || (is_small(params.spec(i)) && small_are_one)) continue;
    row.paper_bytes = row.dense_bytes();
    if (is_small(params.spec(i))) {
      row.sent_bytes = row.parameters * layout.dense_bytes / layout.dense_numel;
    } else {
      row = compressed_row(row, layout, next++);
    }
    plan.tensors.push_back(row);
  }
  if (next < layout.segments.size()) {
    const PlanRow all{.name = "all 1-D tensors", .shape = {}, .parameters = params.small_parameters()};
    plan.tensors.push_back(compressed_row(all, layout, next));
  }
  for (const PlanRow& row : plan.tensors) {
    plan.total.parameters += row.parameters;
    plan.total.kept += row.kept;
    plan.total.paper_bytes += row.paper_bytes;
  }
  plan.total.sent_bytes = layout.sent_bytes();
}

std::vector<PlanFormat> plan_formats(const ParamLayout& params, const Config& config) {
  std::vector<PlanFormat> formats;
  for (size_t values = 0; values < kWireValueNames.size(); ++values) {
    for (size_t indices = 0; indices < kWireIndexNames.size(); ++indices) {
      const WireFormat format{static_cast<WireValues>(values), static_cast<WireIndices>(indices)};
      const DgcLayout layout = message_layout(params, config, config.optimizer.sparsity.final, format);
      const auto entries = static_cast<double>(std::max<int64_t>(layout.wire.entries(), 1));
      formats.push_back({format, wire_format_name(format), layout.sent_bytes(),
                         8 * static_cast<double>(layout.wire.message_bytes()) / entries});
    }
  }
  return formats;
}

// The layouts of a run with `workers` workers, one for each sparsity. A group counts as one worker.
std::vector<DgcLayout> run_layouts(const Config& config, const ParamLayout& params, int64_t workers) {
  std::vector<DgcLayout> layouts;
  for (const double sparsity : sparsities_of(config.optimizer.sparsity)) {
    layouts.push_back(
        make_dgc_layout(params, make_dgc_options(config), sparsity, compressing_workers(config, workers)));
  }
  return layouts;
}

// A backend keeps convolutions' weights in an order of its own: on a processor those of one at a time, on a GPU those
// of all of them and their gradients, for each of the workers that compute at the same time.
int64_t filter_bytes(const Config& config, const PlannedRank& rank) {
  int64_t largest = 0, all = 0;
  for (const Network::Node& node : rank.network().nodes()) {
    const int64_t numel = node.layer->filter().value_or(FilterArgs{}).numel();
    largest = std::max(largest, numel);
    all += numel;
  }
  if (is_cpu(config.device)) return largest * static_cast<int64_t>(sizeof(float));
  return 2 * all * static_cast<int64_t>(dtype_size(rank.activations())) * rank.places();
}

}  // namespace

int64_t PlanMemory::total() const {
  int64_t sum = 0;
  for (size_t use = 0; use < kMemoryUses; ++use) sum += of(static_cast<MemoryUse>(use));
  return sum;
}

Plan make_plan(const Config& config) {
  const PlannedRank rank(config);
  const ParamLayout params(trained_specs(rank.network().params()));
  Plan plan;
  plan.sparsity = config.optimizer.sparsity.final;
  plan.total.name = "total";
  plan_tensors(params, config, plan);
  plan.formats = plan_formats(params, config);
  const bool chooses = config.workers_at_once == 0 && most_at_once(config) > 1 && !is_cpu(config.device);
  const int64_t filters = filter_bytes(config, rank);
  if (chooses) plan.each_more_at_once = rank.activation_bytes() + filters / rank.places();
  plan.memory = {rank.device().counted(), filters};
  plan.checkpoint = {rank.saved_by_workers(), rank.saved_for_all(), rank.saves_momentum()};
  return plan;
}

std::vector<PlanPhase> plan_phases(const Config& config, int64_t workers) {
  const ParamLayout params(trained_specs(planned_network(config).params()));
  const auto samples = static_cast<double>(config.exchange.every_steps * config.exchange.workers_per_group *
                                           task_of(config).samples_per_step(config));
  std::vector<PlanPhase> phases;
  for (const DgcLayout& layout : run_layouts(config, params, workers)) {
    const int64_t sent = layout.sent_bytes();
    phases.push_back({layout.sparsity, layout.travel, sent, static_cast<double>(sent) / samples});
  }
  return phases;
}

double break_even_sparsity(int64_t workers, double bytes_per_entry) {
  return std::max(0.0, 1 - 8 / (static_cast<double>(workers) * bytes_per_entry));
}

double break_even_sparsity(int64_t workers, WireFormat format) {
  constexpr int64_t kNumel = 1 << 24;
  const auto too_long = [&](double sparsity) {
    const WireLayout layout({{.numel = kNumel, .k = kept_elements(kNumel, sparsity)}}, format);
    return static_cast<double>(workers) * static_cast<double>(layout.message_bytes()) > 8.0 * kNumel;
  };
  double low = 0, high = 1;  // a message gets no longer as sparsity rises
  if (!too_long(low)) return 0;
  for (int i = 0; i < 20; ++i) {
    const double middle = (low + high) / 2;
    (too_long(middle) ? low : high) = middle;
  }
  return high;
}

}  // namespace dgc
