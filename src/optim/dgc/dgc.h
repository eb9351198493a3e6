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
  WireFormat wire{};  // how messages travel; what it cannot say stays in v
  Transport transport = Transport::automatic;
  ExchangeAlgorithm algorithm = ExchangeAlgorithm::all_gather;  // split_reduce: only in the canonical wire format
  SmallTensors small_tensors = SmallTensors::dense;
  double small_tensors_sparsity = 0.99;  // of all small tensors together, where they are sparse
  // Compress and exchange beside the backward pass, in buckets of at least so many bytes of gradient; none: after it.
  // Needs that there is no clip_norm. While the selection travels as a dense sum it comes after all.
  std::optional<int64_t> bucket_bytes{};
  bool operator==(const DgcOptions&) const = default;
};

// Deep Gradient Compression (Lin et al. 2018). Tensors of two and more dimensions are compressed; how the others travel
// is to be chosen.
std::unique_ptr<Optimizer> make_dgc(const OptimizerContext&, const DgcOptions&);

}  // namespace dgc
