#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "tensor/shape.h"

namespace dgc {

// One tensor of the model, or all of them together: what each worker sends of it per step.
struct PlanRow {
  std::string name;
  Shape shape{};
  int64_t parameters = 0;
  int64_t kept = 0;         // entries sent; 0: travels dense
  int64_t paper_bytes = 0;  // as the paper counts: 48 bits per entry
  int64_t sent_bytes = 0;   // its part of the message as configured; of all: with the header
  int64_t dense_bytes() const { return 4 * parameters; }
};

// What each worker would send per step if messages travelled like this.
struct PlanFormat {
  WireFormat format;
  std::string name;        // "fp16+rice"
  int64_t sent_bytes = 0;  // the whole message and what travels dense
  double entry_bits = 0;   // of the message, per entry
};

// What goes out at one sparsity of a run.
struct PlanPhase {
  double sparsity = 0;
  Transport transport = Transport::sparse;  // of what is compressed
  bool split = false;                       // sparse, but split and reduced
  int64_t sent_bytes = 0;                   // by each worker per step
};

// Bytes of one rank, as its device allocates them.
struct PlanMemory {
  int64_t weights = 0, gradients = 0;
  // u and v of the rank's workers, twice with exchange.overlap "on", or what fp16 takes from dense gradients.
  int64_t residuals = 0;
  int64_t momentum = 0;  // what the rank's replicas share: momentum, and the sum of what was sent
  int64_t messages = 0;  // its own, and everyone's or their sum, at most of all sparsities
  int64_t activations = 0;
  int64_t other = 0;  // BatchNorm statistics, what is carried along a text, a batch of each worker, scratch
  int64_t total() const { return weights + gradients + residuals + momentum + messages + activations + other; }
};

struct Plan {
  std::vector<PlanRow> tensors;
  PlanRow total;
  std::vector<PlanFormat> formats;  // all there are
  double sparsity = 0;
  PlanMemory memory;
};

// What a config would send and take, without opening its data.
Plan make_plan(const Config&);

// The sparsities of the warm-up in turn, and the one that follows, with so many workers.
std::vector<PlanPhase> plan_phases(const Config&, int64_t workers);

// Below this sparsity, N workers receive fewer bytes from a dense ring all-reduce (8 bytes per parameter) than from an
// all-gather of messages with bytes_per_entry for each kept element. 0 when the message always wins.
double break_even_sparsity(int64_t workers, double bytes_per_entry);
// The same for large tensors in a format, whose bytes per entry depend on the sparsity.
double break_even_sparsity(int64_t workers, WireFormat format);

}  // namespace dgc
