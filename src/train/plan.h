#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "dist/wire_sizes.h"
#include "tensor/shape.h"

namespace dgc {

// One tensor of the model, or all of them together.
struct PlanRow {
  std::string name;
  Shape shape;
  int64_t parameters = 0;
  int64_t kept = 0;                                       // entries sent per step; 0: travels dense
  std::array<int64_t, kWireFormats.size()> sent_bytes{};  // per worker and step, in the order of kWireFormats
  int64_t dense_bytes() const { return 4 * parameters; }
};

// Bytes of one rank, as its device allocates them.
struct PlanMemory {
  int64_t weights = 0, gradients = 0;
  int64_t residuals = 0;  // u and v of the rank's workers
  int64_t momentum = 0;   // what the rank's replicas share: momentum, and the sum of what was sent
  int64_t messages = 0;   // its own and everyone's, at the lowest sparsity of the warm-up
  int64_t activations = 0;
  int64_t other = 0;  // BatchNorm statistics, one batch of images, scratch
  int64_t total() const { return weights + gradients + residuals + momentum + messages + activations + other; }
};

struct Plan {
  std::vector<PlanRow> tensors;
  PlanRow total;
  double sparsity = 0;
  PlanMemory memory;
};

// What a config would send and take, without opening its data.
Plan make_plan(const Config&);

// Below this sparsity, N workers receive fewer bytes from a dense ring all-reduce (8 bytes per parameter) than from an
// all-gather of messages with bytes_per_entry for each kept element. 0 when the message always wins.
double break_even_sparsity(int64_t workers, double bytes_per_entry);

}  // namespace dgc
