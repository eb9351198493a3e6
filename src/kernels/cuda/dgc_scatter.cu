// Writes a message as dense numbers (kernels/dgc_args.h), in one launch: every block of 65,536 elements becomes zero
// and then gets its entries. 4 bytes are written per element.
#include "kernels/cuda/dgc_check.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

struct DgcScatter {
  static constexpr const char* kName = "dgc_scatter";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcScatterArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    if (a.control->skip != 0) return;
    for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
      const DgcSegment& s = a.table.segments[a.table.segment_of_block[block]];
      const int64_t local = block - s.first_block, first = local * kDgcBlock;
      float* dense = a.dense + s.offset + first;
      const int numel = static_cast<int>(smaller(kDgcBlock, s.numel - first));
      for (int i = static_cast<int>(threadIdx.x); i < numel; i += kDgcThreads) dense[i] = 0;
      __syncthreads();
      const DgcEntries e(a.message + kWireHeaderBytes, s, local);
      for (unsigned i = e.begin + threadIdx.x; i < e.end; i += kDgcThreads) {
        dense[e.offsets[i]] = 0.f + e.values[i];  // -0 becomes 0
      }
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_scatter(const DgcScatterArgs& args) { Queue(*this).run<DgcScatter>(args.table.blocks, args); }

}  // namespace dgc
