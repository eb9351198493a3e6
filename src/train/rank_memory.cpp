#include "train/rank_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "tasks/make.h"

namespace dgc {

EvaluatorMemory::EvaluatorMemory(const Network& network, Backend& backend, std::vector<int64_t> rows,
                                 int64_t most_labels, DType activations)
    : executors(network, backend, std::move(rows), Executor::Mode::evaluation, activations),
      input(backend, network, {executors.most_rows(), most_labels}, activations),
      state_layout(network.state()),
      state(backend.device(), state_layout),
      stats(backend.device(), sizeof(LossStats)) {}

std::string part_name(const char* what, size_t part) { return part == 0 ? what : fmt::format("{}{}", what, part); }

RankMemory::RankMemory(const Config& config, const Network& network, std::vector<int64_t> rows, int64_t most_labels,
                       Backend& backend, Communicator& communicator)
    : params(network.params()),
      trained(trained_specs(network.params())),
      statistics(network.buffers()),
      state(network.state()),
      weights(backend.device(), params, MemoryUse::weights),
      mean_statistics(backend.device(), statistics),
      executors(network, backend, std::move(rows), Executor::Mode::training, activation_type(config, backend)),
      record(backend, communicator, static_cast<int>(config.workers_per_rank)),
      statistics_sum(backend, communicator, static_cast<int>(config.workers_per_rank), statistics.extent(),
                     MemoryUse::other),
      device_(backend.device()) {
  const auto& device = device_;
  const BatchInput::Sizes sizes{executors.most_rows(), most_labels};
  for (int64_t i = 0; i < config.workers_per_rank; ++i) {
    Worker& worker = workers.emplace_back(
        Worker{Arena(device, params, MemoryUse::gradients), Arena(device, statistics), Arena(device, statistics), {}});
    for (int64_t part = 0; part < config.training.accumulate; ++part) {
      worker.micro_batches.push_back({Arena(device, state), Arena(device, state),
                                      BatchInput(backend, network, sizes, activation_type(config, backend))});
    }
  }
  optimizer = make_optimizer(config, {.backend = backend,
                                      .communicator = communicator,
                                      .layout = trained,
                                      .local_workers = static_cast<int>(workers.size())});
}

void RankMemory::share_activations(std::initializer_list<EvaluatorMemory*> evaluations) {
  size_t most = executors.activation_bytes();
  for (const EvaluatorMemory* evaluation : evaluations) {
    if (evaluation != nullptr) most = std::max(most, evaluation->executors.activation_bytes());
  }
  activations_ = Buffer(device_, most, MemoryUse::activations);
  executors.attach(activations_.data());
  for (EvaluatorMemory* evaluation : evaluations) {
    if (evaluation != nullptr) evaluation->executors.attach(activations_.data());
  }
}

void RankMemory::for_each_micro_batch(const std::function<void(MicroBatch&)>& call) {
  for (Worker& worker : workers) std::ranges::for_each(worker.micro_batches, call);
}

}  // namespace dgc
