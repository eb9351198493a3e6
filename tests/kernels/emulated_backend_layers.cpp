#include "kernels/cuda/cross_entropy.cuh"
#include "kernels/cuda/embedding.cuh"
#include "kernels/cuda/lrn.cuh"
#include "kernels/cuda/pool.cuh"
#include "kernels/cuda/rearrange.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

void EmulatedBackend::softmax_cross_entropy(const CrossEntropyArgs& args, ConstView logits, ConstView labels,
                                            View dlogits, double* stats) {
  cuda::softmax_cross_entropy(queue_, args, logits, labels, dlogits, stats);
}

void EmulatedBackend::embedding_forward(const EmbeddingArgs& args, ConstView tokens, ConstView table, View y) {
  cuda::embedding_forward(queue_, args, tokens, table, y);
}

void EmulatedBackend::embedding_backward(const EmbeddingArgs& args, ConstView tokens, ConstView dy, View dtable) {
  cuda::embedding_backward(queue_, args, tokens, dy, dtable);
}

void EmulatedBackend::lrn_forward(const LrnArgs& args, ConstView x, View y) { cuda::lrn_forward(queue_, args, x, y); }

void EmulatedBackend::lrn_backward(const LrnArgs& args, ConstView x, ConstView dy, View dx) {
  cuda::lrn_backward(queue_, args, x, dy, dx);
}

size_t EmulatedBackend::pool_saved_bytes(const PoolArgs& args) { return cuda::pool_saved_bytes(args); }

void EmulatedBackend::pool_forward(const PoolArgs& args, ConstView x, View y, View saved) {
  cuda::pool_forward(queue_, args, x, y, saved);
}

void EmulatedBackend::pool_backward(const PoolArgs& args, ConstView dy, ConstView saved, View dx) {
  cuda::pool_backward(queue_, args, dy, saved, dx);
}

void EmulatedBackend::global_pool_forward(const GlobalPoolArgs& args, ConstView x, View y) {
  cuda::global_pool_forward(queue_, args, x, y);
}

void EmulatedBackend::global_pool_backward(const GlobalPoolArgs& args, ConstView dy, View dx) {
  cuda::global_pool_backward(queue_, args, dy, dx);
}

void EmulatedBackend::shortcut_forward(const ShortcutArgs& args, ConstView x, View y) {
  cuda::shortcut_forward(queue_, args, x, y);
}

void EmulatedBackend::shortcut_backward(const ShortcutArgs& args, ConstView dy, View dx) {
  cuda::shortcut_backward(queue_, args, dy, dx);
}

void EmulatedBackend::flatten_forward(const FlattenArgs& args, ConstView x, View y) {
  cuda::flatten_forward(queue_, args, x, y);
}

void EmulatedBackend::flatten_backward(const FlattenArgs& args, ConstView dy, View dx) {
  cuda::flatten_backward(queue_, args, dy, dx);
}

}  // namespace dgc
