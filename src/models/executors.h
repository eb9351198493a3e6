#pragma once

#include <memory>
#include <vector>

#include "models/executor.h"

namespace dgc {

// A network's executors for batches of several sizes, which take turns in one memory. Where the batch dimension is
// time, a shorter batch fits into a longer executor too: its padding counts for nothing (docs/architecture.md).
class Executors {
 public:
  // rows: sizes of the batches, in any order; a 0 is skipped, and another size must be there. The other arguments, and
  // what is thrown, are those of Executor's constructor.
  Executors(const Network&, Backend&, const std::vector<int64_t>& rows, Executor::Mode, DType activations);

  bool are_one() const { return executors_.size() == 1; }
  int64_t most_rows() const { return executors_.back()->batch(); }
  size_t activation_bytes() const;  // bytes of the executor that needs most
  void attach(void* memory);        // memory of activation_bytes()

  // The smallest executor with room for a batch of so many rows. Throws InternalError when none has.
  Executor& for_rows(int64_t rows);

 private:
  std::vector<std::unique_ptr<Executor>> executors_;  // by rows
};

// Rows of executors for sequences of 1 to `longest` steps: few enough that each executor is used again and again, and
// enough that padding adds a tenth at most, or some steps.
std::vector<int64_t> padded_lengths(int64_t longest);

}  // namespace dgc
