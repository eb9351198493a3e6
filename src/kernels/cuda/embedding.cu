#include "kernels/cuda/embedding.cuh"

#include "kernels/cuda/queue.h"

namespace dgc {

using cuda::Queue;

void CudaBackend::embedding_forward(const EmbeddingArgs& args, ConstView tokens, ConstView table, View y) {
  Queue queue(*this);
  cuda::embedding_forward(queue, args, tokens, table, y);
}

void CudaBackend::embedding_backward(const EmbeddingArgs& args, ConstView tokens, ConstView dy, View dtable) {
  Queue queue(*this);
  cuda::embedding_backward(queue, args, tokens, dy, dtable);
}

}  // namespace dgc
