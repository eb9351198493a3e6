#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "tensor/counting_device.h"
#include "tensor/shape.h"

namespace dgc {

// One tensor of the model, or all of them together: what each worker sends of it in an exchange.
struct PlanRow {
  std::string name;
  Shape shape{};
  int64_t parameters = 0;
  int64_t kept = 0;         // entries sent; 0: travels dense
  int64_t paper_bytes = 0;  // the paper's count: 48 bits per entry
  int64_t sent_bytes = 0;   // its part of the configured message; the total has the header too
  int64_t dense_bytes() const { return 4 * parameters; }
};

// What each worker would send in an exchange in one format of messages.
struct PlanFormat {
  WireFormat format;
  std::string name;        // "fp16+rice"
  int64_t sent_bytes = 0;  // the whole message and what travels dense
  double entry_bits = 0;   // bits of the message per entry
};

// What each worker sends at one sparsity of a run.
struct PlanPhase {
  double sparsity = 0;
  Travel travel = Travel::sparse;  // how the compressed tensors travel
  int64_t sent_bytes = 0;          // bytes that each worker, or group of workers, sends in an exchange
  double bytes_per_sample = 0;     // these bytes over what it has trained on since the last exchange
};

// Bytes of one rank: what its device allocates, of each use the most at one time. Scratch is estimated.
struct PlanMemory {
  MemoryCount allocated;
  int64_t scratch = 0;

  int64_t of(MemoryUse use) const { return use == MemoryUse::scratch ? scratch : allocated.peak(use); }
  int64_t total() const;
};

// Bytes of the tensors in a checkpoint at the end of a round.
struct PlanCheckpoint {
  int64_t workers = 0;  // of one rank's workers; less where a rank's workers begin no group
  int64_t shared = 0;   // weights, statistics and momentum, once
  bool has_momentum = false;
};

struct Plan {
  std::vector<PlanRow> tensors;  // those that are trained
  PlanRow total;
  std::vector<PlanFormat> formats;  // all formats
  double sparsity = 0;
  PlanMemory memory;
  // Bytes of activations of each further worker that a GPU computes at once with the others, where it has room; 0: the
  // config says how many there are at once.
  int64_t each_more_at_once = 0;
  PlanCheckpoint checkpoint;
};

// Plans what a config would send and allocate, without opening its data. Throws UserError as planned_network() does,
// where messages cannot carry the tensors, and where this machine has a GPU but not what the config needs.
Plan make_plan(const Config&);

// A phase for each of sparsities_of(), in a run with `workers` workers. Throws UserError as planned_network() does,
// where messages cannot carry the tensors, and unless the workers form whole groups.
std::vector<PlanPhase> plan_phases(const Config&, int64_t workers);

// Below this sparsity, N workers receive fewer bytes from a dense ring all-reduce (8 bytes per parameter) than from an
// all-gather of messages with bytes_per_entry for each kept element. 0 when the message always wins.
double break_even_sparsity(int64_t workers, double bytes_per_entry);
// The break-even sparsity for large tensors in a format whose bytes per entry depend on the sparsity.
double break_even_sparsity(int64_t workers, WireFormat format);

}  // namespace dgc
