#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "run/safetensors.h"
#include "train/steps/rank_memory.h"
#include "train/steps/step_computation.h"

// What the files of a checkpoint hold beside the weights (train/weights_file.h): for those who save it, restore it, or
// only plan it.
namespace dgc {

// What a worker's file keeps: tensors of an arena, with a prefix before their names. Those of a group lie in the file
// of its first worker.
struct WorkerState {
  std::string prefix;
  const Arena* arena;
  bool of_group = false;
};
// local: the worker's number on its rank.
std::vector<WorkerState> states_of(const RankMemory&, const StepComputation&, int64_t local);

// The number, over all ranks, of the first worker in a worker's group.
int64_t first_of_group(const Config&, int64_t worker);

// The tensors in a worker's file.
std::vector<TensorSource> worker_tensors(const std::vector<WorkerState>&, bool begins_group);
// The tensors that all ranks share besides the weights.
std::vector<TensorSource> shared_tensors(const Optimizer&);

}  // namespace dgc
