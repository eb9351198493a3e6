#include "kernels/cpu/sequence.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"

namespace dgc {
namespace {

int64_t frames_per_chunk(int64_t width) { return std::max<int64_t>(1, kElementwiseChunk / width); }

}  // namespace

void CpuBackend::sequence_mask(const SequenceArgs& a, ConstView lengths, ConstView x, View y) {
  const int32_t* const length = lengths.i32();
  const float* const from = x.f32();
  float* const to = y.f32();
  for_chunks(a.frames(), frames_per_chunk(a.width), [&](int64_t first, int64_t count) {
    for_stretches(
        a, length, first, first + count,
        [&](int64_t frame, int64_t n) {
          if (to != from) std::copy_n(from + frame * a.width, n * a.width, to + frame * a.width);
        },
        [&](int64_t frame, int64_t n) { std::fill_n(to + frame * a.width, n * a.width, 0.f); });
  });
}

void CpuBackend::sequence_reverse(const SequenceArgs& a, ConstView lengths, ConstView x, View y) {
  const int32_t* const length = lengths.i32();
  const float* const from = x.f32();
  float* const to = y.f32();
  for_chunks(a.steps, frames_per_chunk(a.width * a.streams), [&](int64_t first, int64_t count) {
    for (int64_t stream = 0; stream < a.streams; ++stream) {
      const int64_t valid = valid_steps(a, length[stream]);
      for (int64_t step = first; step < first + count; ++step) {
        float* const out = to + frame_at(a, stream, step) * a.width;
        if (step < valid) {
          std::copy_n(from + frame_at(a, stream, valid - 1 - step) * a.width, a.width, out);
        } else {
          std::fill_n(out, a.width, 0.f);
        }
      }
    }
  });
}

}  // namespace dgc
