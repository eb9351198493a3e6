#include "train/plan.h"

#include <algorithm>
#include <limits>

#include "models/executor.h"
#include "optim/dgc_layout.h"
#include "train/make.h"
#include "train/ranks.h"

namespace dgc {
namespace {

PlanRow plan_row(const ParamSpec& spec, double sparsity) {
  PlanRow row{.name = spec.name, .shape = spec.shape, .parameters = spec.shape.numel()};
  if (is_compressed(spec)) row.kept = kept_elements(row.parameters, sparsity);
  for (size_t f = 0; f < kWireFormats.size(); ++f) {
    row.sent_bytes[f] = row.kept > 0 ? wire_bytes(kWireFormats[f], row.parameters, row.kept) : row.dense_bytes();
  }
  return row;
}

double lowest_sparsity(const OptimizerOptions& o) {
  double lowest = o.sparsity;
  if (o.warmup.epochs > 0) {
    for (const double phase : o.warmup.sparsity) lowest = std::min(lowest, phase);
  }
  return o.flush_at_end ? 0 : lowest;
}

// As far as the config tells.
int64_t most_test_samples(const DataOptions& data) {
  const int64_t limit = data.test_limit.value_or(std::numeric_limits<int64_t>::max());
  return data.type == DataType::synthetic ? std::min(limit, data.test_samples) : limit;
}

// The backend keeps one convolution's weights at a time in an order of its own.
int64_t largest_convolution(const ParamLayout& params) {
  int64_t largest = 0;
  for (int i = 0; i < params.size(); ++i) {
    if (params.spec(i).shape.rank() == 4) largest = std::max(largest, params.numel(i));
  }
  return largest * 4;
}

PlanMemory plan_memory(const Config& config, const Network& network, const ParamLayout& params) {
  const auto backend = make_backend(config);
  const Executor training(network, *backend, config.training.batch_per_worker, Executor::Mode::training,
                          activation_type(config.precision));
  const int64_t eval_batch = std::min(config.training.eval_batch, most_test_samples(config.data));
  const Executor evaluation(network, *backend, eval_batch, Executor::Mode::evaluation,
                            activation_type(config.precision));
  const int64_t arena = params.extent() * 4;
  const int64_t statistics = ParamLayout(network.buffers()).extent() * 4;
  const int64_t local = config.workers_per_rank;
  // What an ordered sum over all workers takes: the sum and, with several ranks, one shard of every worker and its sum.
  const auto reduced = [&](int64_t bytes) {
    return config.ranks > 1 ? bytes * (1 + local) + bytes / config.ranks : bytes;
  };
  const auto images = [&](int64_t batch) { return network.shape(0, batch).numel() * 4; };

  PlanMemory memory;
  memory.weights = arena;
  memory.gradients = local * arena;
  memory.momentum = arena + (config.optimizer.type == OptimizerType::dgc ? arena : reduced(arena));
  memory.activations = static_cast<int64_t>(std::max(training.activation_bytes(), evaluation.activation_bytes()));
  // Every batch lies there twice: where it arrives and where the network reads it.
  memory.other = (2 * local + 1) * statistics + reduced(statistics) +
                 2 * (local * images(config.training.batch_per_worker) + images(eval_batch)) +
                 largest_convolution(params);
  if (config.optimizer.type == OptimizerType::dgc) {
    const WireValues values = config.exchange.wire.values == ValueFormat::fp16 ? WireValues::fp16 : WireValues::fp32;
    const DgcLayout largest = make_dgc_layout(params, lowest_sparsity(config.optimizer), values);
    memory.residuals = local * arena * (config.optimizer.momentum_correction ? 2 : 1);
    const int64_t gathered = config.ranks > 1 ? local * config.ranks : 0;
    memory.messages = (local + gathered) * static_cast<int64_t>(largest.wire.message_bytes()) +
                      local * 4 * largest.dense_numel + reduced(4 * largest.dense_numel);
  }
  return memory;
}

}  // namespace

Plan make_plan(const Config& config) {
  const Network network = make_network(config.model, sample_spec(config).image);
  const ParamLayout params(network.params());
  Plan plan;
  plan.sparsity = config.optimizer.sparsity;
  plan.total.name = "total";
  for (const ParamSpec& spec : network.params()) {
    const PlanRow row = plan_row(spec, plan.sparsity);
    plan.total.parameters += row.parameters;
    plan.total.kept += row.kept;
    for (size_t f = 0; f < kWireFormats.size(); ++f) plan.total.sent_bytes[f] += row.sent_bytes[f];
    plan.tensors.push_back(row);
  }
  plan.memory = plan_memory(config, network, params);
  return plan;
}

double break_even_sparsity(int64_t workers, double bytes_per_entry) {
  return std::max(0.0, 1 - 8 / (static_cast<double>(workers) * bytes_per_entry));
}

}  // namespace dgc
