#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "optim/optimizer.h"

namespace dgc {

struct DgcOptions {
  SgdOptions sgd{};                 // clip_norm: each worker clips its gradient / N to clip_norm / sqrt(N)
  bool momentum_correction = true;  // false: Gradient Dropping, momentum after the exchange
  bool factor_masking = true;
  WireFormat wire{};  // how messages are coded; what the coding rounds away stays in v
  Transport transport = Transport::automatic;
  ExchangeAlgorithm algorithm = ExchangeAlgorithm::all_gather;  // split_reduce needs the canonical wire format
  SmallTensors small_tensors = SmallTensors::dense;
  double small_tensors_sparsity = 0.99;  // sparsity of all small tensors together, if they are sparse
  // If set, compression and exchange overlap the backward pass, in buckets of at least this many bytes of gradient; if
  // not, they follow it. Not allowed with clip_norm. While the selection travels as a dense sum, or is split and
  // reduced, compression and exchange follow the backward pass in any case.
  std::optional<int64_t> bucket_bytes{};
  bool operator==(const DgcOptions&) const = default;
};

// Deep Gradient Compression (Lin et al. 2018). Tensors of two and more dimensions are compressed;
// DgcOptions::small_tensors says how the others travel.
std::unique_ptr<Optimizer> make_dgc(const OptimizerContext&, const DgcOptions&);

}  // namespace dgc
