#pragma once

#include <functional>

#include "optim/optimizer.h"

namespace dgc {

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)>;

// Makes an optimizer for which every `workers_per_group` consecutive workers are one worker: their gradients are added
// up in worker order and in fp32, and the optimizer that `make` returns sees a context in which every group is a
// worker. A group lies within one rank or is made of whole ranks. All ranks of a group do the same work on the same
// numbers, so they need not tell each other anything. Each worker's gradient must have been divided by
// workers_per_group, so that the sum is the group's mean.
std::unique_ptr<Optimizer> make_grouped(const OptimizerContext&, int workers_per_group, const MakeOptimizer& make);

}  // namespace dgc
