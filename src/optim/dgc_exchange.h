#pragma once

#include "optim/dgc_layout.h"
#include "optim/optimizer.h"

namespace dgc {

// The message buffers of one rank: its own workers' messages one after another, and everyone's after the exchange.
class DgcExchange {
 public:
  explicit DgcExchange(const OptimizerContext& context) : context_(context) {}

  // Makes room for messages of this layout. Allocates only when they are larger than any before.
  void prepare(const DgcLayout& layout);

  std::byte* message(int local_worker) const;  // to be filled by dgc_compress

  // Collective. All workers' messages in worker order, one after another; valid until the next prepare().
  const std::byte* run();

 private:
  OptimizerContext context_;
  size_t message_bytes_ = 0;
  Buffer mine_;
  Buffer all_;  // empty with one rank: all are mine
};

}  // namespace dgc
