// Rows of a table by token, and the gradient of the table. The gradient needs no atomics: there is one block per
// position, which finds out whether its token came at an earlier position. If not, the block alone adds all positions
// of that token, in order, to the table's row. The result has the CPU's bits. Every block reads the tokens at most
// once, 4 bytes for each position; rows of the table that no token names are not touched. A token that is not in the
// table makes its row of y NaN, so that the step is skipped and reported, because the host cannot look at tokens
// without waiting.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename T, int V>
struct EmbeddingForward : ElementwiseKernel {
  static constexpr const char* kName = "embedding_forward";
  struct Args {
    EmbeddingArgs size;
    const int32_t* tokens;
    const float* table;
    T* y;
  };

  __device__ static void run(const Args& a, Shared&) {
    const int64_t at = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V;
    if (at >= a.size.rows * a.size.width) return;
    const int token = a.tokens[at / a.size.width];
    float row[V];
    if (token >= 0 && token < a.size.vocabulary) {
      load(a.table + token * a.size.width + at % a.size.width, row);
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j) row[j] = NAN;
    }
    store(row, a.y + at);
  }
};

template <typename T>
struct EmbeddingBackward {
  static constexpr const char* kName = "embedding_backward";
  static constexpr int kBlock = 256;
  static constexpr int kWarps = kBlock / 32;
  struct Args {
    EmbeddingArgs size;
    const int32_t* tokens;
    const T* dy;
    float* dtable;
  };
  struct Shared {
    unsigned same[kWarps];  // bits: which of kBlock positions have the block's token
  };

  // Finds which of the kBlock positions from `first` on have the block's token.
  __device__ static void look(const Args& a, Shared& s, int64_t first, int token) {
    const int me = static_cast<int>(threadIdx.x);
    const int64_t position = first + me;
    const unsigned same = __ballot_sync(0xffffffffu, position < a.size.rows && a.tokens[position] == token);
    if (me % 32 == 0) s.same[me / 32] = same;
    __syncthreads();
  }

  // Returns the first of the positions that look() found, or kBlock if there is none.
  __device__ static int first_of(const Shared& s) {
    for (int w = 0; w < kWarps; ++w) {
      if (s.same[w] != 0) return w * 32 + __ffs(static_cast<int>(s.same[w])) - 1;
    }
    return kBlock;
  }

  __device__ static void run(const Args& a, Shared& s) {
    const int64_t mine = blockIdx.x;
    const int token = a.tokens[mine];
    if (token < 0 || token >= a.size.vocabulary) return;
    for (int64_t first = 0; first < a.size.rows; first += kBlock) {
      look(a, s, first, token);
      const int found = first_of(s);
      if (found < kBlock && first + found < mine) return;  // that position's block adds them; all threads return
      for (int64_t c = threadIdx.x; c < a.size.width && found < kBlock; c += kBlock) {
        float& to = a.dtable[token * a.size.width + c];
        float sum = to;
        for (int w = 0; w < kWarps; ++w) {
          for (unsigned left = s.same[w]; left != 0; left &= left - 1) {
            const int64_t position = first + w * 32 + __ffs(static_cast<int>(left)) - 1;
            sum += to_float(a.dy[position * a.size.width + c]);
          }
        }
        to = sum;
      }
      __syncthreads();
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::embedding_forward(const EmbeddingArgs& args, ConstView tokens, ConstView table, View y) {
  Queue queue(*this);
  dispatch(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<EmbeddingForward<T, V>>(elementwise_blocks(args.rows * args.width, V),
                                        {args, tokens.i32(), table.f32(), pointer<T>(y)});
    };
    if (args.width % 4 == 0 && aligned(table.data, y.data)) {
      run.template operator()<4>();
    } else {
      run.template operator()<1>();
    }
  });
}

void KernelBackend::embedding_backward(const EmbeddingArgs& args, ConstView tokens, ConstView dy, View dtable) {
  Queue queue(*this);
  dispatch(dy.dtype, [&]<typename T>() {
    queue.run<EmbeddingBackward<T>>(args.rows, {args, tokens.i32(), pointer<T>(dy), dtable.f32()});
  });
}

}  // namespace dgc
