#include "tools/plan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "config/model_types.h"
#include "dist/wire_sizes.h"
#include "models/executor.h"
#include "optim/dgc/layout.h"
#include "tasks/make.h"
#include "tasks/task.h"
#include "train/ranks.h"

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
  std::vector<double> sparsities;
  if (config.optimizer.sparsity.warmup.epochs > 0) sparsities = config.optimizer.sparsity.warmup.sparsity;
  sparsities.push_back(config.optimizer.sparsity.final);
  std::vector<DgcLayout> layouts;
  for (const double sparsity : sparsities) {
    layouts.push_back(
        make_dgc_layout(params, make_dgc_options(config), sparsity, compressing_workers(config, workers)));
  }
  return layouts;
}

// The memory of an OrderedReduce over `bytes` of each worker: the sum and, with several ranks, one shard of every
// worker and the sum of these shards.
int64_t reduced(int64_t ranks, int64_t workers_per_rank, int64_t bytes) {
  return ranks > 1 ? bytes * (1 + workers_per_rank) + bytes / ranks : bytes;
}

// How many of a rank's workers compress; a group of workers counts as one.
int64_t local_compressing_workers(const Config& config) {
  return std::max<int64_t>(config.workers_per_rank / config.exchange.workers_per_group, 1);
}

// The memory for the sums of the groups that have workers on a rank.
int64_t group_sums(const Config& config, int64_t bytes) {
  const int64_t size = config.exchange.workers_per_group, local = std::min(size, config.workers_per_rank);
  return size > 1 ? local_compressing_workers(config) * reduced(size / local, local, bytes) : 0;
}

// The memory of a Fp16AllReduce of `bytes` of fp32: the sum, each local worker's gradient in fp16, and the sum of the
// local shards in fp16 and fp32. Several ranks add one shard of every worker and the sum, both in fp16.
int64_t half_reduced(const Config& config, int64_t bytes) {
  const int64_t packed = config.workers_per_rank * bytes / 2;
  const int64_t shard = bytes * 3 / 2 / config.ranks;
  return bytes + packed + shard + (config.ranks > 1 ? packed + bytes / 2 : 0);
}

// Bytes of a worker's messages: in canonical form and, where they travel coded, in coded form.
std::array<size_t, 2> message_sizes(const ParamLayout& params, const DgcLayout& layout) {
  std::array<size_t, 2> bytes{};
  for (const DgcBucketLayout& bucket : cut_into_buckets(params, layout)) {
    bytes[0] += bucket.layout.canonical.message_bytes();
    if (layout.is_coded()) bytes[1] += bucket.layout.wire.message_bytes();
  }
  return bytes;
}

// The memory for the messages of a rank's workers in both forms of message_sizes(), and for the messages of all ranks
// or the buffers that sum them up.
int64_t message_memory(const Config& config, const ParamLayout& params) {
  const int64_t workers = compressing_workers(config, config.ranks * config.workers_per_rank);
  const int64_t local = local_compressing_workers(config), ranks = workers / local;  // a group of ranks counts as one
  std::vector<DgcLayout> layouts = run_layouts(config, params, config.ranks * config.workers_per_rank);
  if (config.optimizer.flush_at_end) {
    layouts.push_back(make_flush_layout(params, make_dgc_options(config)));
  }
  // Each message buffer grows on its own and is kept; only the buffers for sums are freed.
  std::array<int64_t, 2> own{}, everyones{};
  int64_t sums = 0;
  for (const DgcLayout& layout : layouts) {
    const std::array<size_t, 2> message = message_sizes(params, layout);
    const bool gathered = ranks > 1 && layout.transport == Transport::sparse && !layout.split;
    for (size_t i = 0; i < message.size(); ++i) {
      const int64_t mine = local * static_cast<int64_t>(message[i]);
      own[i] = std::max(own[i], mine);
      if (gathered) everyones[i] = std::max(everyones[i], ranks * mine);
    }
    if (layout.split) sums = std::max(sums, layout.split->memory_bytes(local));
    if (layout.transport == Transport::dense)
      sums = std::max(sums, reduced(ranks, local, 4 * layout.compressed_extent()));
  }
  return own[0] + own[1] + std::max(everyones[0] + everyones[1], sums);
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
  const Task& task = task_of(config);
  const int64_t rows = task.most_rows(config, Split::train);
  const Executor training(network, *backend, rows, Executor::Mode::training, activation_type(config.precision));
  const Network tested = make_network(config.model, task.sample(config, Split::test));
  const int64_t eval_rows = task.most_rows(config, Split::test);
  const Executor evaluation(tested, *backend, eval_rows, Executor::Mode::evaluation, activation_type(config.precision));
  const int64_t arena = params.extent() * 4;
  const int64_t statistics = ParamLayout(network.buffers()).extent() * 4;
  const int64_t local = config.workers_per_rank;
  const auto carried = [](const Network& net) { return ParamLayout(net.state()).extent() * 4; };
  const auto input = [](const Network& net, int64_t batch) { return net.shape(0, batch).numel() * 4; };
  const int64_t evaluators = task.evaluated_sets();

  PlanMemory memory;
  memory.weights = arena;
  memory.gradients = local * arena;
  memory.momentum = arena;
  memory.activations = static_cast<int64_t>(std::max(training.activation_bytes(), evaluation.activation_bytes()));
  // Every batch lies on the device twice: where the upload arrives and where the network reads it.
  memory.other = (2 * local + 1) * statistics + reduced(config.ranks, local, statistics) +
                 2 * (local * input(network, rows) + evaluators * input(tested, eval_rows)) +
                 2 * local * carried(network) + evaluators * carried(tested) + largest_convolution(params);
  if (config.optimizer.type == OptimizerType::sgd) {
    const bool half = config.exchange.dense_values == DenseValues::fp16;
    memory.residuals = half ? local * arena : 0;
    memory.momentum += half ? half_reduced(config, arena) : reduced(config.ranks, local, arena);
  } else {
    memory.momentum += arena;
    memory.gradients += group_sums(config, arena);
    const DgcLayout layout = message_layout(params, config, 0, config.optimizer.dgc.wire);
    const int64_t own = local_compressing_workers(config);
    const int64_t ranks = compressing_workers(config, config.ranks * local) / own;  // a group of ranks counts as one
    memory.residuals = own * arena * (config.optimizer.dgc.momentum_correction ? 2 : 1);
    if (config.exchange.overlap == Overlap::on) memory.residuals *= 2;  // plus the u and v after the step
    const int64_t gathered = ranks > 1 ? own * ranks : 0;
    memory.messages = message_memory(config, params) + own * layout.dense_bytes;
    memory.messages += config.optimizer.dgc.small_tensors == SmallTensors::dense_fp16
                           ? gathered * layout.dense_bytes + 4 * layout.dense_numel
                           : reduced(ranks, own, layout.dense_bytes);
  }
  return memory;
}

}  // namespace

Plan make_plan(const Config& config) {
  const Network network = make_network(config.model, task_of(config).sample(config, Split::train));
  const ParamLayout params(network.params());
  Plan plan;
  plan.sparsity = config.optimizer.sparsity.final;
  plan.total.name = "total";
  plan_tensors(params, config, plan);
  plan.formats = plan_formats(params, config);
  plan.memory = plan_memory(config, network, params);
  return plan;
}

std::vector<PlanPhase> plan_phases(const Config& config, int64_t workers) {
  const ParamLayout params(make_network(config.model, task_of(config).sample(config, Split::train)).params());
  std::vector<PlanPhase> phases;
  for (const DgcLayout& layout : run_layouts(config, params, workers)) {
    phases.push_back({layout.sparsity, layout.transport, layout.split.has_value(), layout.sent_bytes()});
  }
  return phases;
}

double break_even_sparsity(int64_t workers, double bytes_per_entry) {
  return std::max(0.0, 1 - 8 / (static_cast<double>(workers) * bytes_per_entry));
}

double break_even_sparsity(int64_t workers, WireFormat format) {
  constexpr int64_t kNumel = 1 << 24;
  const auto too_long = [&](double sparsity) {
    WireTensor tensor;
    tensor.numel = kNumel;
    tensor.k = kept_elements(kNumel, sparsity);
    return static_cast<double>(workers) * static_cast<double>(WireLayout({tensor}, format).message_bytes()) >
           8.0 * kNumel;
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
