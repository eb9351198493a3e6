#pragma once

#include <memory>
#include <vector>

#include "models/executor.h"

namespace dgc {

// A network's executors for batches of several sizes, which take turns in one memory. Where a batch is time, a shorter
// one fits into a longer executor too: what is padded counts for nothing (docs/architecture.md).
class Executors {
 public:
  // rows: of the batches, in any order; a 0 is passed over, and there must be another. As for Executor.
  Executors(const Network&, Backend&, std::vector<int64_t> rows, Executor::Mode, DType activations = DType::f32);

  bool are_one() const { return executors_.size() == 1; }
  int64_t most_rows() const { return executors_.back()->batch(); }
  size_t activation_bytes() const;  // of the one that needs most
  void attach(void* memory);        // of activation_bytes()

  // The smallest that has room for a batch of so many rows.
  Executor& for_rows(int64_t rows);

 private:
  std::vector<std::unique_ptr<Executor>> executors_;  // by rows
};

// Rows of executors for sequences of 1 to `longest` steps: so few that each is used again and again, and so many that
// padding adds a tenth at most, or some steps.
std::vector<int64_t> padded_lengths(int64_t longest);

}  // namespace dgc
