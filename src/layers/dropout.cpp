#include "layers/dropout.h"

#include "tensor/rng.h"

namespace dgc {

Dropout::Dropout(const DropoutOptions& options, const std::string& name)
    : p_(static_cast<float>(options.p)), stream_(rng_stream("dropout", name)) {
  if (!(p_ >= 0 && p_ < 1)) throw_user_error("dropout: p must be at least 0 and below 1, not {}", p_);
}

DropoutArgs Dropout::args(const RunContext& run, const Shape& x) const {
  const auto per_sample = static_cast<uint64_t>(x.numel() / x[0]);
  return {.numel = x.numel(),
          .p = run.training ? p_ : 0.f,
          .seed = run.seed,
          .stream = stream_,
          .per_step = run.samples_per_step * per_sample,
          .first = run.first_sample * per_sample,
          .control = run.control};
}

void Dropout::forward(const ForwardArgs& f) const { f.backend.dropout_forward(args(f.run, f.x[0].shape), f.x[0], f.y); }

void Dropout::backward(const BackwardArgs& b) const {
  if (b.dx[0]) b.backend.dropout_forward(args(b.run, b.dy.shape), b.dy, b.dx[0]);
}

}  // namespace dgc
