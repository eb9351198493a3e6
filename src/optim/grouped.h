#pragma once

#include <functional>

#include "optim/optimizer.h"

namespace dgc {

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)>;

// An optimizer for which `workers_per_group` consecutive workers are one: their gradients are added up in worker order
// and in fp32, and what `make` returns sees a context in which every group is a worker. A group lies within one rank,
// or is made of whole ranks; then all of them do the same work on the same numbers, and nothing need be told to them.
// Each worker's gradient must have been divided by workers_per_group, for the sum is to be the group's mean.
std::unique_ptr<Optimizer> make_grouped(const OptimizerContext&, int workers_per_group, const MakeOptimizer& make);

}  // namespace dgc
