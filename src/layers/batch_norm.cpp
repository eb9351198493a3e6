#include "layers/batch_norm.h"

namespace dgc {

std::vector<ParamSpec> norm_params(int64_t channels) {
  return {{"weight", {channels}, {Init::Kind::constant, 1}}, {"bias", {channels}, {}}};
}

std::vector<ParamSpec> norm_buffers(int64_t channels) {
  return {{"running_mean", {channels}, {}}, {"running_var", {channels}, {Init::Kind::constant, 1}}};
}

BatchNorm::BatchNorm(const BatchNormOptions& options) : options_(options) {
  if (options.channels < 1) throw_user_error("batch_norm: channels must be positive, not {}", options.channels);
}

Shape BatchNorm::output_shape(std::span<const Shape> in) const {
  const Shape& x = in[0];
  if (x.rank() < 2 || x[x.rank() - 1] != options_.channels) {
    throw_user_error("batch_norm expects {} channels but its input is {}", options_.channels, x.str());
  }
  if (options_.residual && in[1] != x) {
    throw_user_error("the shortcut {} does not have the shape {} of what it is added to", in[1].str(), x.str());
  }
  return x;
}

BatchNormArgs BatchNorm::args(const Shape& x) const {
  return {.rows = x.numel() / options_.channels,
          .channels = options_.channels,
          .eps = options_.eps,
          .momentum = options_.momentum,
          .relu = options_.relu,
          .residual = options_.residual};
}

size_t BatchNorm::saved_bytes(Backend&, std::span<const Shape> in, DType) const {
  const BatchNormArgs a = args(in[0]);
  // What is about to train asks first, so a plan and a start say the same before any step.
  if (a.rows == 1) {
    throw_user_error(
        "a BatchNorm of {} channels has one value of each to normalise, which gives zeros; raise "
        "training.batch_per_worker, lower training.accumulate, or take larger images",
        a.channels);
  }
  return a.saved_bytes();
}

void BatchNorm::forward(const ForwardArgs& f) const {
  const BatchNormArgs a = args(f.x[0].shape);
  const ConstView residual = options_.residual ? f.x[1] : ConstView();
  if (f.run.training) {
    f.backend.batch_norm_forward(a, f.x[0], residual, f.params[0], f.params[1], f.buffers[0], f.buffers[1], f.y,
                                 f.saved);
  } else {
    f.backend.batch_norm_inference(a, f.x[0], residual, f.params[0], f.params[1], f.buffers[0], f.buffers[1], f.y);
  }
}

void BatchNorm::backward(const BackwardArgs& b) const {
  b.backend.batch_norm_backward(args(b.x[0].shape), b.x[0], b.y, b.params[0], b.saved, b.dy, b.dx[0], b.dparams[0],
                                b.dparams[1]);
  // The executor gave the shortcut's gradient dy's memory where it could; elsewhere the gradient is a copy.
  if (options_.residual && b.dx[1] && b.dx[1].data != b.dy.data) {
    b.backend.device()->copy(b.dx[1].data, b.dy.data, b.dy.bytes());
  }
}

}  // namespace dgc
