// The DGC step of one worker (kernels/dgc_args.h), for all tensors in ONE cooperative launch. Its phases:
//   accumulate   passes once over g, u and v, 20 bytes per element (12 without momentum correction), and collects the
//                elements that reach a guess of their tensor's threshold
//   sort out     finds which bin of magnitudes holds the k-th largest of the collected elements, a few thousand keys
//   radix        selects exactly over v in the tensors where the guess was no good, with 20 more bytes per element
//   emit         writes offsets and values into the message, in index order, and sets v (and u) to zero there
//   seal         writes the checksum and the header
// The result has the CPU's bits, whatever the grid, the order of its threads and the guess: k is exact, ties go to the
// lower index, and entries come in index order. |v| is compared by its bits, so non-finite values rank above all
// others; a NaN travels as 0x7fc00000. Every product-sum is an explicit fma, and nothing is flushed to zero.
#include <algorithm>

#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/dgc_radix.cuh"
#include "kernels/cuda/dgc_seal.cuh"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

struct DgcCompress {
  static constexpr const char* kName = "dgc_compress";
  static constexpr int kBlock = kDgcThreads;
  struct Args {
    DgcCompressArgs a;
    DgcCompressScratch scratch;
  };
  using Shared = DgcShared;

  __device__ static void run(const Args& args, Shared& shared) {
    const DgcCompressArgs& a = args.a;
    const DgcCompressScratch& scratch = args.scratch;
    if (a.control->skip != 0) return;

    if (!a.momentum_correction) {
      accumulate<DgcRule::plain>(a, scratch);
    } else if (a.nesterov) {
      accumulate<DgcRule::nesterov>(a, scratch);
    } else {
      accumulate<DgcRule::momentum>(a, scratch);
    }
    grid_sync();
    dgc_sort_out(a, scratch, shared.strips[warp()]);
    grid_sync();
    const bool listed = all_are_listed(a.table, scratch, shared);  // the same on every block
    if (!listed) {
      for (int digit = 0; digit < 3; ++digit) {
        count_digit(a, scratch, digit, shared);
        grid_sync();
      }
      count_unlisted(a, scratch, shared);
      grid_sync();
    }
    emit_listed(a, scratch, shared.strips[warp()]);
    if (!listed) emit_unlisted(a, scratch, shared);
    grid_sync();
    zero_all(scratch.collected, a.table.count);
    zero_all(scratch.ties, a.table.count);
    zero_all(scratch.drawn, 1);
    zero_all(scratch.guess_histogram, int64_t{a.table.count} * kDgcGuessBins);
    if (!listed) zero_all(scratch.radix_histogram, int64_t{a.table.count} * kDgcRadixBins);
    hash_payload(a.message, a.header.payload_bytes, a.control->step, scratch.hashes);
    if (last_block(scratch.ticket, gridDim.x, shared.is_last) && warp() == 0) {
      write_header(a.header, a.control->step, scratch.hashes, a.message, nullptr);
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_compress(const DgcCompressArgs& given) {
  DgcCompressArgs args = given;
  Queue queue(*this);
  if (args.u_from == nullptr) args.u_from = args.u;
  if (args.v_from == nullptr) args.v_from = args.v;
  if (dgc_->compress_blocks == 0) dgc_->compress_blocks = queue.cooperative_blocks<DgcCompress>();
  const int64_t useful = std::max(int64_t{1}, args.table.blocks * kDgcStrips / kDgcWarps);  // a strip per warp
  queue.run_cooperative<DgcCompress>(std::min(dgc_->compress_blocks, useful),
                                     {args, dgc_->compress(args.table, args.header.payload_bytes)});
}

}  // namespace dgc
