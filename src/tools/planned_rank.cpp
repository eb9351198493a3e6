#include "tools/planned_rank.h"

#include "config/data_types.h"
#include "config/model_types.h"
#include "tasks/make.h"
#include "tasks/task.h"
#include "train/ranks/rank_backend.h"
#include "train/saved_tensors.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

// What "auto" becomes depends on how the ranks are connected, which a plan does not know. Nothing is computed, so no
// file says how.
Config to_plan_with(Config config) {
  if (config.exchange.overlap == Overlap::automatic) config.exchange.overlap = Overlap::off;
  config.conv_plans.clear();
  return config;
}

// A plan may be made on another machine than its run. Where there is no GPU, ops need what the processor's ops need.
std::unique_ptr<Backend> backend_to_plan_with(const Config& config) {
  return cuda_devices().empty() ? make_cpu_backend(1) : make_backend(config);
}

// A batch of a worker, all zeros.
Batch empty_batch(const Network& network, int64_t rows, int64_t most_labels) {
  const auto inputs = static_cast<size_t>(network.shape(0, rows).numel());
  const int64_t streams = most_labels > 0 ? network.shape(0)[1] : 0;
  const int64_t labels_per_row = network.loss().logits_shape(network.shape(network.output()))[0];
  Batch batch;
  batch.values.resize(inputs);
  batch.tokens.resize(inputs);
  batch.labels.resize(static_cast<size_t>(streams > 0 ? streams * (1 + most_labels) : rows * labels_per_row));
  batch.lengths.resize(static_cast<size_t>(streams));
  return batch;
}

int64_t bytes_of(const std::vector<TensorSource>& tensors) {
  int64_t bytes = 0;
  for (const TensorSource& tensor : tensors) bytes += static_cast<int64_t>(tensor.bytes());
  return bytes;
}

}  // namespace

Network planned_network(const Config& config) {
  return make_network(config.model, task_of(config).sample(config, Split::train));
}

PlannedRank::PlannedRank(const Config& config)
    : config_(to_plan_with(config)),
      network_(planned_network(config)),
      device_(std::make_shared<CountingDevice>()),
      backend_(backend_to_plan_with(config_), device_),
      ranks_(make_planning_communicator(static_cast<int>(config.ranks))),
      memory_(config_, network_, {task_of(config).most_rows(config, Split::train)}, task_of(config).most_labels(config),
              backend_, *ranks_),
      computation_(make_step_computation({config_, backend_, *ranks_, memory_, network_})) {
  const Task& task = task_of(config);
  const auto evaluation = [&](Split split) {
    return std::make_unique<EvaluatorMemory>(make_network(config.model, task.sample(config, split)), backend_,
                                             std::vector{task.most_rows(config, split)}, task.most_labels(config),
                                             activation_type(config, backend_));
  };
  test_ = evaluation(Split::test);
  if (has_validation_set(config.data)) valid_ = evaluation(Split::valid);
  memory_.share_activations({test_.get(), valid_.get()});
  if (config.optimizer.flush_at_end) memory_.optimizer->prepare_flush();
  if (compresses(config.optimizer.type)) {
    for (const double sparsity : sparsities_of(config.optimizer.sparsity)) memory_.optimizer->prepare(sparsity);
  }
}

int64_t PlannedRank::saved_by_workers() const {
  int64_t bytes = 0;
  for (int64_t worker = 0; worker < std::ssize(memory_.workers); ++worker) {
    const bool begins_group = first_of_group(config_, worker) == worker;
    bytes += bytes_of(worker_tensors(states_of(memory_, *computation_, worker), begins_group));
  }
  return bytes;
}

int64_t PlannedRank::saved_for_all() const {
  return bytes_of(weight_tensors(
             {.weights = memory_.weights, .statistics = memory_.mean_statistics, .ties = network_.ties()})) +
         bytes_of(shared_tensors(*memory_.optimizer));
}

bool PlannedRank::saves_momentum() const { return !shared_tensors(*memory_.optimizer).empty(); }

DType PlannedRank::activations() const { return activation_type(config_, backend_); }

std::vector<OpCost> PlannedRank::step() {
  const double sparsity = config_.optimizer.sparsity.final;
  memory_.optimizer->prepare(sparsity);  // so that what a new layout takes is not counted
  const Batch batch = empty_batch(network_, memory_.most_rows(), task_of(config_).most_labels(config_));
  backend_.take_calls();
  memory_.for_each_micro_batch([&](RankMemory::MicroBatch& part) {
    part.input.stage(batch);
    part.input.arrive();
  });
  const int64_t before = device_->moved();
  computation_->queue({.input = {}, .sparsity = sparsity});
  std::vector<OpCost> costs = backend_.take_calls();
  OpCost moved{.op = "copies and zeros"};
  moved.bytes = device_->moved() - before;
  moved.launches = 0;
  costs.push_back(moved);
  return costs;
}

}  // namespace dgc
