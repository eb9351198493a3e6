#include <omp.h>

#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dgc_select.h"
#include "kernels/cpu/wire_message.h"
#include "kernels/dgc_guess.h"
#include "tensor/errors.h"

// The DGC step of one worker. One parallel pass over all blocks of all segments accumulates and collects candidates. A
// second pass, over the segments, selects among the candidates. The radix selection serves the segments whose guess was
// no good. The guess decides how the k largest elements are found, never which elements they are, so neither the guess
// nor the number of threads changes the result.
namespace dgc {
namespace {

constexpr int64_t kListShare = 4;  // of a tensor's elements, one in so many may be a candidate

void lay_out(const DgcCompressArgs& args, DgcScratch& scratch, int threads) {
  scratch.threads.resize(std::max(scratch.threads.size(), static_cast<size_t>(threads)));
  for (DgcThreadScratch& thread : scratch.threads) thread.used = 0;
  const auto segments = static_cast<size_t>(args.table.count);
  if (scratch.segment_capacity < segments) {
    scratch.segments = std::make_unique<DgcSegmentState[]>(segments);
    scratch.segment_capacity = segments;
  }
  scratch.chunks.clear();
  for (size_t i = 0; i < segments; ++i) {
    const DgcSegment& s = args.table.segments[i];
    DGC_CHECK(s.k >= 1 && s.k <= s.numel && s.numel < int64_t{1} << 32, "1 <= k <= numel < 2^32");
    DGC_CHECK(s.first_block == static_cast<int64_t>(scratch.chunks.size()), "first_block counts all blocks before");
    DgcSegmentState& state = scratch.segments[i];
    const float guess = next_threshold(args.guesses[i], s);
    state.guess = magnitude_bits(guess);
    state.limit = guess > 0 ? candidate_limit(s, kListShare) : 0;
    state.collected = 0;
    for (int64_t b = 0; b < s.blocks(); ++b) {
      scratch.chunks.push_back({static_cast<int32_t>(i), static_cast<int32_t>(b), 0, 0, 0});
    }
  }
}

void accumulate_chunk(const DgcCompressArgs& args, DgcScratch& scratch, DgcChunk& chunk, int thread) {
  const DgcSegment& s = args.table.segments[chunk.segment];
  DgcSegmentState& state = scratch.segments[static_cast<size_t>(chunk.segment)];
  DgcThreadScratch& mine = scratch.threads[static_cast<size_t>(thread)];
  const int64_t first = chunk.block * kDgcBlock;
  const int64_t at = s.offset + first;

  DgcAccumulateArgs a;
  a.g = args.g + at;
  a.u = args.momentum_correction ? args.u + at : nullptr;
  a.v = args.v + at;
  a.u_from = args.momentum_correction && args.u_from != nullptr ? args.u_from + at : a.u;
  a.v_from = args.v_from != nullptr ? args.v_from + at : a.v;
  a.n = static_cast<size_t>(std::min(kDgcBlock, s.numel - first));
  a.scale = args.scale == nullptr ? 1 : *args.scale;
  a.momentum = args.momentum;
  a.guess = state.guess;
  a.first_index = static_cast<uint32_t>(first);
  // The lists of a segment that has too many candidates are not used, so nothing is added to them any more.
  if (state.collected <= state.limit && state.limit > 0) {
    if (mine.list.size() < mine.used + a.n) mine.list.resize(2 * (mine.used + a.n));
    a.keys = mine.list.data() + mine.used;
  }
  const auto accumulate = !args.momentum_correction ? dgc_accumulate_plain
                          : args.nesterov           ? dgc_accumulate_nesterov
                                                    : dgc_accumulate_momentum;
  chunk.thread = thread;
  chunk.first = mine.used;
  chunk.count = accumulate(a);
  mine.used += chunk.count;
  state.collected += chunk.count;
}

}  // namespace

void CpuBackend::dgc_compress(const DgcCompressArgs& args) {
  if (args.control->skip != 0) return;
  DgcScratch& scratch = *dgc_scratch_;
  lay_out(args, scratch, threads_);
  const auto chunks = static_cast<int64_t>(scratch.chunks.size());
  const auto segments = args.table.count;
  const auto usable = [&](int s) {
    const DgcSegmentState& state = scratch.segments[static_cast<size_t>(s)];
    return state.collected >= args.table.segments[s].k && state.collected <= state.limit;
  };

#pragma omp parallel num_threads(threads_)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic)
    for (int64_t c = 0; c < chunks; ++c)
      accumulate_chunk(args, scratch, scratch.chunks[static_cast<size_t>(c)], thread);
#pragma omp for schedule(dynamic)
    for (int s = 0; s < segments; ++s) {
      if (!usable(s)) continue;
      const DgcSelected selected = dgc_select_from_list(args, s, scratch, scratch.threads[static_cast<size_t>(thread)]);
      remember(args.guesses[s], args.table.segments[s], selected.threshold, selected.tail, true);
    }
  }
  for (int s = 0; s < segments; ++s) {
    if (usable(s)) continue;
    const DgcSelected selected = dgc_select_by_radix(args, s, scratch, threads_);
    remember(args.guesses[s], args.table.segments[s], selected.threshold, selected.tail, false);
  }
  seal_message(args.message, args.header, args.control->step);
}

}  // namespace dgc
