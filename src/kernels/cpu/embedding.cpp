#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/parallel.h"

namespace dgc {
namespace {

constexpr int64_t kWidthPiece = 256;

void check_tokens(const int32_t* tokens, const EmbeddingArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    DGC_CHECK(tokens[r] >= 0 && tokens[r] < args.vocabulary,
              fmt::format("token {} of a vocabulary of {}", tokens[r], args.vocabulary));
  }
}

}  // namespace

void CpuBackend::embedding_forward(const EmbeddingArgs& args, ConstView tokens, ConstView table, View y) {
  const int32_t* const token = tokens.i32();
  check_tokens(token, args);
  const float* const from = table.f32();
  float* const to = y.f32();
  for_chunks(args.rows, 16, [&](int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      std::copy_n(from + token[r] * args.width, args.width, to + r * args.width);
    }
  });
}

// Threads share out the columns, not the rows, so that each thread adds to a token's row in the order of positions.
void CpuBackend::embedding_backward(const EmbeddingArgs& args, ConstView tokens, ConstView dy, View dtable) {
  const int32_t* const token = tokens.i32();
  check_tokens(token, args);
  const float* const from = dy.f32();
  float* const to = dtable.f32();
  for_chunks(args.width, kWidthPiece, [&](int64_t first, int64_t count) {
    for (int64_t r = 0; r < args.rows; ++r) {
      add_chunk(from + r * args.width + first, count, to + token[r] * args.width + first);
    }
  });
}

}  // namespace dgc
