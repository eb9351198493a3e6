#pragma once

#include <span>
#include <vector>

#include "optim/dgc_layout.h"
#include "optim/optimizer.h"

namespace dgc {

// The message buffers of one rank: its own workers' messages one after another, and everyone's after the exchange.
class DgcExchange {
 public:
  explicit DgcExchange(const OptimizerContext& context) : context_(context) {}

  // Makes room for messages of this layout. Allocates only when they are larger than any before.
  void prepare(const DgcLayout& layout);

  std::byte* payload(int local_worker) const;  // to be filled by dgc_compress

  // Seals the local messages, gathers all, verifies each and returns the payloads in worker order, valid until the next
  // prepare(). Throws UserError that names the worker whose message cannot be used.
  std::span<const std::byte* const> run(uint64_t step);

 private:
  std::span<std::byte> message(int local_worker) const;

  OptimizerContext context_;
  const WireLayout* wire_ = nullptr;
  Buffer mine_;
  Buffer all_;
  std::vector<const std::byte*> payloads_;
};

}  // namespace dgc
