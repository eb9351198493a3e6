// Recurrent layers by cuDNN, each in one direction and over all steps. cuDNN wants the lengths of sequences on the
// host, so masks around the layer serve sequences of different lengths. cuDNN's weight space is the parameters
// themselves where they lie as cuDNN wants them (rnn_cache.h), and cuDNN then adds its gradients to ours in place.
// Elsewhere, and in 16 bits, each call copies the weights to a weight space and adds the gradients from one. Our state
// is fp32 and cuDNN's is of the activations' type. The conversion loses nothing, because the numbers come from cuDNN in
// that type.
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/rnn_cache.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::check, cuda::aligned_bytes, cuda::RnnPointers, cuda::PreparedRnn;

namespace {

const float* pointer(ConstView view) { return view ? view.f32() : nullptr; }
RnnPointers pointers(const RnnWeights& w) {
  return {pointer(w.w_ih), pointer(w.w_hh), pointer(w.b_ih), pointer(w.b_hh)};
}
RnnPointers pointers(const RnnGradients& d) {
  return {pointer(d.w_ih), pointer(d.w_hh), pointer(d.b_ih), pointer(d.b_hh)};
}

// Hands out stretches of memory, one behind the other, each aligned to 256 bytes.
class Stretches {
 public:
  explicit Stretches(std::byte* memory) : memory_(memory) {}
  std::byte* take(size_t bytes) {
    std::byte* const stretch = memory_;
    memory_ += aligned_bytes(bytes);
    return stretch;
  }

 private:
  std::byte* memory_;
};

// The size of what forward keeps for backward: cuDNN's reserve, then the state before the first step.
size_t saved_bytes(const PreparedRnn& rnn, const RnnArgs& a, DType type) {
  return aligned_bytes(rnn.reserve_bytes) +
         2 * aligned_bytes(static_cast<size_t>(a.batch * a.hidden) * dtype_size(type));
}

const int32_t* lengths(const PreparedRnn& rnn) { return static_cast<const int32_t*>(rnn.lengths.data()); }

View piece_of(std::byte* space, const PreparedRnn::Piece& piece, DType type) {
  return {space + static_cast<size_t>(piece.to) * dtype_size(type), {piece.numel}, type};
}

void copy_weights(Backend& backend, const PreparedRnn& rnn, const RnnPointers& from, std::byte* space, DType type) {
  for (const PreparedRnn::Piece& piece : rnn.pieces) {
    backend.convert({from[piece.tensor] + piece.from, {piece.numel}}, piece_of(space, piece, type));
  }
}

}  // namespace

size_t CudaBackend::rnn_saved_bytes(const RnnArgs& args, DType type) {
  return saved_bytes(rnns_->get(libraries_->dnn(), {args, type}), args, type);
}

void CudaBackend::rnn_forward(const RnnArgs& a, ConstView x, const RnnWeights& w, const RnnState& state, View y,
                              View saved) {
  cudnnHandle_t dnn = libraries_->dnn();
  const DType type = x.dtype;
  const PreparedRnn& rnn = rnns_->get(dnn, {a, type});
  const bool training = static_cast<bool>(saved);
  const Shape shape{a.batch, a.hidden};
  const size_t state_bytes = static_cast<size_t>(shape.numel()) * dtype_size(type);
  const size_t work_bytes = training ? rnn.training_bytes : rnn.inference_bytes;
  const size_t reserve_bytes = training ? rnn.reserve_bytes : 0;
  Stretches scratch(workspace(aligned_bytes(rnn.weight_bytes) + 4 * aligned_bytes(state_bytes) + work_bytes));
  Stretches kept(static_cast<std::byte*>(saved.data));
  std::byte* const reserve = training ? kept.take(rnn.reserve_bytes) : nullptr;
  const View h_before{training ? kept.take(state_bytes) : scratch.take(state_bytes), shape, type};
  const View c_before{training ? kept.take(state_bytes) : scratch.take(state_bytes), shape, type};
  const View h_after{scratch.take(state_bytes), shape, type}, c_after{scratch.take(state_bytes), shape, type};
  const auto start = [&](View from, View to) {
    if (from) {
      convert(from, to);
    } else {
      device_->zero(to.data, to.bytes());
    }
  };
  start(state.h, h_before);
  start(state.c, c_before);

  const void* weights = rnn.weight_space(pointers(w));
  if (weights == nullptr) {
    std::byte* const copy = scratch.take(rnn.weight_bytes);
    copy_weights(*this, rnn, pointers(w), copy, type);
    weights = copy;
  }
  check(cudnnRNNForward(dnn, rnn.rnn, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, lengths(rnn),
                        rnn.x, x.data, rnn.y, y.data, rnn.state, h_before.data, h_after.data, rnn.state, c_before.data,
                        c_after.data, rnn.weight_bytes, weights, work_bytes, scratch.take(work_bytes), reserve_bytes,
                        reserve),
        "cudnnRNNForward");
  if (state.h) convert(h_after, state.h);
  if (state.c) convert(c_after, state.c);
}

void CudaBackend::rnn_backward(const RnnArgs& a, ConstView x, const RnnWeights& w, ConstView y, View saved,
                               ConstView dy, View dx, const RnnGradients& d) {
  cudnnHandle_t dnn = libraries_->dnn();
  const DType type = x.dtype;
  const PreparedRnn& rnn = rnns_->get(dnn, {a, type});
  const size_t state_bytes = static_cast<size_t>(a.batch * a.hidden) * dtype_size(type);
  const size_t dx_bytes = dx ? 0 : x.bytes();
  Stretches scratch(workspace(2 * aligned_bytes(rnn.weight_bytes) + aligned_bytes(dx_bytes) + rnn.training_bytes));
  Stretches kept(static_cast<std::byte*>(saved.data));
  std::byte* const reserve = kept.take(rnn.reserve_bytes);
  const std::byte *const h_before = kept.take(state_bytes), *const c_before = kept.take(state_bytes);

  const void* weights = rnn.weight_space(pointers(w));
  if (weights == nullptr) {
    std::byte* const copy = scratch.take(rnn.weight_bytes);
    copy_weights(*this, rnn, pointers(w), copy, type);
    weights = copy;
  }
  void* const to_dx = dx ? dx.data : scratch.take(dx_bytes);
  // cuDNN adds to the arena's gradients themselves, or to zeros, which are then added to the arena's gradients.
  std::byte* copy = nullptr;
  void* gradients = const_cast<float*>(rnn.weight_space(pointers(d)));
  if (gradients == nullptr) {
    copy = scratch.take(rnn.weight_bytes);
    device_->zero(copy, rnn.weight_bytes);
    gradients = copy;
  }
  std::byte* const work = scratch.take(rnn.training_bytes);
  check(cudnnRNNBackwardData_v8(dnn, rnn.rnn, lengths(rnn), rnn.y, y.data, dy.data, rnn.x, to_dx, rnn.state, h_before,
                                nullptr, nullptr, rnn.state, c_before, nullptr, nullptr, rnn.weight_bytes, weights,
                                rnn.training_bytes, work, rnn.reserve_bytes, reserve),
        "cudnnRNNBackwardData_v8");
  check(cudnnRNNBackwardWeights_v8(dnn, rnn.rnn, CUDNN_WGRAD_MODE_ADD, lengths(rnn), rnn.x, x.data, rnn.state, h_before,
                                   rnn.y, y.data, rnn.weight_bytes, gradients, rnn.training_bytes, work,
                                   rnn.reserve_bytes, reserve),
        "cudnnRNNBackwardWeights_v8");
  if (copy == nullptr) return;
  std::vector<cuda::FilterCopy> sums;
  for (const PreparedRnn::Piece& piece : rnn.pieces) {
    float* const to = const_cast<float*>(pointers(d)[piece.tensor]) + piece.from;
    // A row of weights has the same order in both layouts.
    sums.push_back({{.out = 1, .in = piece.numel}, piece_of(copy, piece, type).data, to});
  }
  cuda::add_filters(*this, type, sums);
}

}  // namespace dgc
