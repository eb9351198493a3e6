#include "train/saved_tensors.h"

#include "train/weights_file.h"

namespace dgc {

std::vector<WorkerState> states_of(const RankMemory& memory, const StepComputation& computation, int64_t local) {
  const RankMemory::Worker& worker = memory.workers[static_cast<size_t>(local)];
  std::vector<WorkerState> all = {{"", &worker.statistics}};
  for (size_t p = 0; p < worker.micro_batches.size(); ++p) {
    all.push_back({part_name("state", p) + ".", &worker.micro_batches[p].state});
  }
  for (const NamedState& state : memory.optimizer->state()) {
    if (state.worker == local) all.push_back({state.name + ".", state.arena, true});
  }
  for (const NamedState& state : computation.state()) {
    if (state.worker == local) all.push_back({state.name + ".", state.arena});
  }
  return all;
}

int64_t first_of_group(const Config& config, int64_t worker) {
  return worker - worker % config.exchange.workers_per_group;
}

std::vector<TensorSource> worker_tensors(const std::vector<WorkerState>& states, bool begins_group) {
  std::vector<TensorSource> tensors;
  for (const WorkerState& state : states) {
    if (!state.of_group || begins_group) append_tensors(tensors, *state.arena, state.prefix);
  }
  return tensors;
}

std::vector<TensorSource> shared_tensors(const Optimizer& optimizer) {
  std::vector<TensorSource> tensors;
  for (const NamedState& state : optimizer.state()) {
    if (state.worker < 0) append_tensors(tensors, *state.arena, state.name + ".");
  }
  return tensors;
}

}  // namespace dgc
