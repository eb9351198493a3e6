// Recurrent layers by cuDNN, each in one direction and over all steps. cuDNN wants the lengths of sequences on the
// host, so masks around the layer serve sequences of different lengths. cuDNN's weight space is the parameters
// themselves where they lie as cuDNN wants them (rnn_cache.h), and cuDNN then adds its gradients to ours in place.
// Elsewhere, and in 16 bits, each call copies the weights to a weight space and adds the gradients from one. Our state
// is fp32 and cuDNN's is of the activations' type. The conversion loses nothing, because the numbers come from cuDNN in
// that type.
#include <vector>

#include "kernels/carver.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/rnn_cache.h"
#include "kernels/cuda/weights.h"

namespace dgc {

using cuda::check, cuda::RnnPointers, cuda::PreparedRnn;

namespace {

const float* pointer(ConstView view) { return view ? view.f32() : nullptr; }
RnnPointers pointers(const RnnWeights& w) {
  return {pointer(w.w_ih), pointer(w.w_hh), pointer(w.b_ih), pointer(w.b_hh)};
}
RnnPointers pointers(const RnnGradients& d) {
  return {pointer(d.w_ih), pointer(d.w_hh), pointer(d.b_ih), pointer(d.b_hh)};
}

int64_t signed_bytes(size_t bytes) { return static_cast<int64_t>(bytes); }
int64_t state_bytes(const RnnArgs& a, DType type) { return a.batch * a.hidden * signed_bytes(dtype_size(type)); }

// What forward keeps for backward: cuDNN's reserve, then the state before the first step.
struct KeptRnn {
  KeptRnn(const PreparedRnn& rnn, const RnnArgs& a, DType type, Carver memory)
      : reserve(memory.take<std::byte>(signed_bytes(rnn.reserve_bytes))),
        h_before(memory.take<std::byte>(state_bytes(a, type))),
        c_before(memory.take<std::byte>(state_bytes(a, type))),
        bytes(memory.bytes()) {}
  std::byte *reserve, *h_before, *c_before;
  size_t bytes;
};

// A copy of the weights takes no room where cuDNN reads them as they lie.
struct RnnForwardScratch {
  RnnForwardScratch(const PreparedRnn& rnn, const RnnArgs& a, DType type, bool training, bool copies, Carver memory)
      : weights(memory.take<std::byte>(copies ? signed_bytes(rnn.weight_bytes) : 0)),
        h_before(memory.take<std::byte>(training ? 0 : state_bytes(a, type))),
        c_before(memory.take<std::byte>(training ? 0 : state_bytes(a, type))),
        h_after(memory.take<std::byte>(state_bytes(a, type))),
        c_after(memory.take<std::byte>(state_bytes(a, type))),
        work(memory.take<std::byte>(signed_bytes(training ? rnn.training_bytes : rnn.inference_bytes))),
        bytes(memory.bytes()) {}
  std::byte *weights, *h_before, *c_before, *h_after, *c_after, *work;
  size_t bytes;
};

struct RnnBackwardScratch {
  RnnBackwardScratch(const PreparedRnn& rnn, bool copies_weights, bool copies_gradients, size_t dx_bytes, Carver memory)
      : weights(memory.take<std::byte>(copies_weights ? signed_bytes(rnn.weight_bytes) : 0)),
        gradients(memory.take<std::byte>(copies_gradients ? signed_bytes(rnn.weight_bytes) : 0)),
        dx(memory.take<std::byte>(signed_bytes(dx_bytes))),
        work(memory.take<std::byte>(signed_bytes(rnn.training_bytes))),
        bytes(memory.bytes()) {}
  std::byte *weights, *gradients, *dx, *work;
  size_t bytes;
};

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
  return KeptRnn(rnns_->get(libraries_->dnn(), {args, type}), args, type, Carver()).bytes;
}

void CudaBackend::rnn_forward(const RnnArgs& a, ConstView x, const RnnWeights& w, const RnnState& state, View y,
                              View saved) {
  cudnnHandle_t dnn = libraries_->dnn();
  const DType type = x.dtype;
  const PreparedRnn& rnn = rnns_->get(dnn, {a, type});
  const bool training = static_cast<bool>(saved);
  const Shape shape{a.batch, a.hidden};
  const void* weights = rnn.weight_space(pointers(w));
  const auto place = [&](Carver memory) {
    return RnnForwardScratch(rnn, a, type, training, weights == nullptr, memory);
  };
  const RnnForwardScratch scratch = place(Carver(workspace(place(Carver()).bytes)));
  const KeptRnn kept(rnn, a, type, Carver(saved.data));
  const View h_before{training ? kept.h_before : scratch.h_before, shape, type};
  const View c_before{training ? kept.c_before : scratch.c_before, shape, type};
  const View h_after{scratch.h_after, shape, type}, c_after{scratch.c_after, shape, type};
  const auto start = [&](View from, View to) {
    if (from) {
      convert(from, to);
    } else {
      device_->zero(to.data, to.bytes());
    }
  };
  start(state.h, h_before);
  start(state.c, c_before);

  if (weights == nullptr) {
    copy_weights(*this, rnn, pointers(w), scratch.weights, type);
    weights = scratch.weights;
  }
  check(cudnnRNNForward(dnn, rnn.rnn, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, lengths(rnn),
                        rnn.x, x.data, rnn.y, y.data, rnn.state, h_before.data, h_after.data, rnn.state, c_before.data,
                        c_after.data, rnn.weight_bytes, weights, training ? rnn.training_bytes : rnn.inference_bytes,
                        scratch.work, training ? rnn.reserve_bytes : 0, kept.reserve),
        "cudnnRNNForward");
  if (state.h) convert(h_after, state.h);
  if (state.c) convert(c_after, state.c);
}

void CudaBackend::rnn_backward(const RnnArgs& a, ConstView x, const RnnWeights& w, ConstView y, View saved,
                               ConstView dy, View dx, const RnnGradients& d) {
  cudnnHandle_t dnn = libraries_->dnn();
  const DType type = x.dtype;
  const PreparedRnn& rnn = rnns_->get(dnn, {a, type});
  const void* weights = rnn.weight_space(pointers(w));
  // cuDNN adds to the arena's gradients themselves, or to zeros, which are then added to the arena's gradients.
  void* gradients = const_cast<float*>(rnn.weight_space(pointers(d)));
  const bool copies_gradients = gradients == nullptr;
  const auto place = [&](Carver memory) {
    return RnnBackwardScratch(rnn, weights == nullptr, copies_gradients, dx ? 0 : x.bytes(), memory);
  };
  const RnnBackwardScratch scratch = place(Carver(workspace(place(Carver()).bytes)));
  const KeptRnn kept(rnn, a, type, Carver(saved.data));
  if (weights == nullptr) {
    copy_weights(*this, rnn, pointers(w), scratch.weights, type);
    weights = scratch.weights;
  }
  if (copies_gradients) {
    device_->zero(scratch.gradients, rnn.weight_bytes);
    gradients = scratch.gradients;
  }
  check(cudnnRNNBackwardData_v8(dnn, rnn.rnn, lengths(rnn), rnn.y, y.data, dy.data, rnn.x, dx ? dx.data : scratch.dx,
                                rnn.state, kept.h_before, nullptr, nullptr, rnn.state, kept.c_before, nullptr, nullptr,
                                rnn.weight_bytes, weights, rnn.training_bytes, scratch.work, rnn.reserve_bytes,
                                kept.reserve),
        "cudnnRNNBackwardData_v8");
  check(cudnnRNNBackwardWeights_v8(dnn, rnn.rnn, CUDNN_WGRAD_MODE_ADD, lengths(rnn), rnn.x, x.data, rnn.state,
                                   kept.h_before, rnn.y, y.data, rnn.weight_bytes, gradients, rnn.training_bytes,
                                   scratch.work, rnn.reserve_bytes, kept.reserve),
        "cudnnRNNBackwardWeights_v8");
  if (!copies_gradients) return;
  std::vector<cuda::FilterCopy> sums;
  for (const PreparedRnn::Piece& piece : rnn.pieces) {
    float* const to = const_cast<float*>(pointers(d)[piece.tensor]) + piece.from;
    // A row of weights has the same order in both layouts.
    sums.push_back({{.out = 1, .in = piece.numel}, piece_of(scratch.gradients, piece, type).data, to});
  }
  cuda::add_filters(*this, type, sums);
}

}  // namespace dgc
