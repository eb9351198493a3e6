// LSTMs by cuDNN. Its weight space is the parameters themselves where they lie as cuDNN wants them (rnn_cache.h), and
// its gradients are then added to ours in place; elsewhere, and in 16 bits, each call copies them there and back. The
// state is fp32 with us and of the activations' type with cuDNN, which loses nothing: it was of that type before.
#include <algorithm>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/rnn_cache.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::check, cuda::LstmPointers, cuda::PreparedLstm;

namespace {

constexpr size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

LstmPointers pointers(const LstmWeights& w) { return {w.w_ih.f32(), w.w_hh.f32(), w.b_ih.f32(), w.b_hh.f32()}; }
LstmPointers pointers(const LstmGradients& d) { return {d.w_ih.f32(), d.w_hh.f32(), d.b_ih.f32(), d.b_hh.f32()}; }

// Stretches of memory, one after the other, each 256-byte aligned.
class Stretches {
 public:
  explicit Stretches(std::byte* memory) : memory_(memory) {}
  std::byte* take(size_t bytes) {
    std::byte* const stretch = memory_;
    memory_ += round_up(bytes);
    return stretch;
  }

 private:
  std::byte* memory_;
};

// What forward leaves for backward: cuDNN's reserve, then the state before the first step.
size_t saved_bytes(const PreparedLstm& lstm, const LstmArgs& a, DType type) {
  return round_up(lstm.reserve_bytes) + 2 * round_up(static_cast<size_t>(a.batch * a.hidden) * dtype_size(type));
}

const int32_t* lengths(const PreparedLstm& lstm) { return static_cast<const int32_t*>(lstm.lengths.data()); }

View piece_of(std::byte* space, const PreparedLstm::Piece& piece, DType type) {
  return {space + static_cast<size_t>(piece.to) * dtype_size(type), {piece.numel}, type};
}

void copy_weights(Backend& backend, const PreparedLstm& lstm, const LstmPointers& from, std::byte* space, DType type) {
  for (const PreparedLstm::Piece& piece : lstm.pieces) {
    backend.convert({from[piece.tensor] + piece.from, {piece.numel}}, piece_of(space, piece, type));
  }
}

}  // namespace

// An executor asks before it is known in which type: enough for any.
size_t CudaBackend::lstm_saved_bytes(const LstmArgs& args) {
  size_t most = 0;
  for (const DType type : {DType::f32, DType::f16}) {
    most = std::max(most, saved_bytes(rnns_->get(libraries_->dnn(), {args, type}), args, type));
  }
  return most;
}

void CudaBackend::lstm_forward(const LstmArgs& a, ConstView x, const LstmWeights& w, View h, View c, View y,
                               View saved) {
  cudnnHandle_t dnn = libraries_->dnn();
  const DType type = x.dtype;
  const PreparedLstm& lstm = rnns_->get(dnn, {a, type});
  const bool training = static_cast<bool>(saved);
  const Shape state{a.batch, a.hidden};
  const size_t state_bytes = static_cast<size_t>(state.numel()) * dtype_size(type);
  const size_t work_bytes = training ? lstm.training_bytes : lstm.inference_bytes;
  const size_t reserve_bytes = training ? lstm.reserve_bytes : 0;
  Stretches scratch(workspace(round_up(lstm.weight_bytes) + 4 * round_up(state_bytes) + work_bytes));
  Stretches kept(static_cast<std::byte*>(saved.data));
  std::byte* const reserve = training ? kept.take(lstm.reserve_bytes) : nullptr;
  const View h_before{training ? kept.take(state_bytes) : scratch.take(state_bytes), state, type};
  const View c_before{training ? kept.take(state_bytes) : scratch.take(state_bytes), state, type};
  const View h_after{scratch.take(state_bytes), state, type}, c_after{scratch.take(state_bytes), state, type};
  convert(h, h_before);
  convert(c, c_before);

  const void* weights = lstm.weight_space(pointers(w));
  if (weights == nullptr) {
    std::byte* const copy = scratch.take(lstm.weight_bytes);
    copy_weights(*this, lstm, pointers(w), copy, type);
    weights = copy;
  }
  check(cudnnRNNForward(dnn, lstm.rnn, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, lengths(lstm),
                        lstm.x, x.data, lstm.y, y.data, lstm.state, h_before.data, h_after.data, lstm.state,
                        c_before.data, c_after.data, lstm.weight_bytes, weights, work_bytes, scratch.take(work_bytes),
                        reserve_bytes, reserve),
        "cudnnRNNForward");
  convert(h_after, h);
  convert(c_after, c);
}

void CudaBackend::lstm_backward(const LstmArgs& a, ConstView x, const LstmWeights& w, ConstView y, View saved,
                                ConstView dy, View dx, const LstmGradients& d) {
  cudnnHandle_t dnn = libraries_->dnn();
  const DType type = x.dtype;
  const PreparedLstm& lstm = rnns_->get(dnn, {a, type});
  const size_t state_bytes = static_cast<size_t>(a.batch * a.hidden) * dtype_size(type);
  const size_t dx_bytes = dx ? 0 : x.bytes();
  Stretches scratch(workspace(2 * round_up(lstm.weight_bytes) + round_up(dx_bytes) + lstm.training_bytes));
  Stretches kept(static_cast<std::byte*>(saved.data));
  std::byte* const reserve = kept.take(lstm.reserve_bytes);
  const std::byte *const h_before = kept.take(state_bytes), *const c_before = kept.take(state_bytes);

  const void* weights = lstm.weight_space(pointers(w));
  if (weights == nullptr) {
    std::byte* const copy = scratch.take(lstm.weight_bytes);
    copy_weights(*this, lstm, pointers(w), copy, type);
    weights = copy;
  }
  void* const to_dx = dx ? dx.data : scratch.take(dx_bytes);
  // cuDNN adds: to the arena's gradients themselves, or to zeros that are then added to them.
  std::byte* copy = nullptr;
  void* gradients = const_cast<float*>(lstm.weight_space(pointers(d)));
  if (gradients == nullptr) {
    copy = scratch.take(lstm.weight_bytes);
    device_->zero(copy, lstm.weight_bytes);
    gradients = copy;
  }
  std::byte* const work = scratch.take(lstm.training_bytes);
  check(cudnnRNNBackwardData_v8(dnn, lstm.rnn, lengths(lstm), lstm.y, y.data, dy.data, lstm.x, to_dx, lstm.state,
                                h_before, nullptr, nullptr, lstm.state, c_before, nullptr, nullptr, lstm.weight_bytes,
                                weights, lstm.training_bytes, work, lstm.reserve_bytes, reserve),
        "cudnnRNNBackwardData_v8");
  check(cudnnRNNBackwardWeights_v8(dnn, lstm.rnn, CUDNN_WGRAD_MODE_ADD, lengths(lstm), lstm.x, x.data, lstm.state,
                                   h_before, lstm.y, y.data, lstm.weight_bytes, gradients, lstm.training_bytes, work,
                                   lstm.reserve_bytes, reserve),
        "cudnnRNNBackwardWeights_v8");
  if (copy == nullptr) return;
  for (const PreparedLstm::Piece& piece : lstm.pieces) {
    float* const to = const_cast<float*>(pointers(d)[piece.tensor]) + piece.from;
    const Conv2dArgs plain{.in_c = piece.numel, .out_c = 1};  // one row of weights has the same order everywhere
    cuda::add_filter(*this, plain, type, piece_of(copy, piece, type).data, {to, {piece.numel}});
  }
}

}  // namespace dgc
