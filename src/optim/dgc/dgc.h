#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "optim/optimizer.h"

namespace dgc {

// What becomes of the momentum that factor masking clears. dropped: as in the paper. sent: all that it would still have
// added to v, momentum / (1 - momentum) times u, is sent with v.
enum class MaskedMomentum { dropped, sent };

struct DgcOptions {
  SgdOptions sgd{};                 // clip_norm: each worker clips its gradient / N to clip_norm / sqrt(N)
  bool momentum_correction = true;  // false: Gradient Dropping, momentum after the exchange
  bool factor_masking = true;
  MaskedMomentum masked_momentum = MaskedMomentum::dropped;  // sent: needs all_gather
  WireFormat wire{};  // how messages are coded; what the coding rounds away stays in v
  Transport transport = Transport::automatic;
  ExchangeAlgorithm algorithm = ExchangeAlgorithm::all_gather;  // split_reduce needs the canonical wire format
  SmallTensors small_tensors = SmallTensors::dense;
  double small_tensors_sparsity = 0.99;  // sparsity of all small tensors together, if they are sparse
  // If set, compression and exchange overlap the backward pass, in buckets of at least this many bytes of gradient; if
  // not, they follow it. Not allowed with clip_norm. While the selection travels as a dense sum, or is split and
  // reduced, compression and exchange follow the backward pass in any case.
  std::optional<int64_t> bucket_bytes{};
  // Steps may also be taken by halves (CarriedStep). Needs several ranks, messages that travel sparse, as one bucket,
  // and no dense_fp16.
  bool carried = false;
  bool operator==(const DgcOptions&) const = default;
};

// Deep Gradient Compression (Lin et al. 2018). Tensors of two and more dimensions are compressed;
// DgcOptions::small_tensors says how the others travel.
std::unique_ptr<Optimizer> make_dgc(const OptimizerContext&, const DgcOptions&);

}  // namespace dgc
