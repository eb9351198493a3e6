#include "kernels/cuda/dgc_apply.cuh"
#include "kernels/cuda/dgc_compress.cuh"
#include "kernels/cuda/dgc_deal.cuh"
#include "kernels/cuda/dgc_decode.cuh"
#include "kernels/cuda/dgc_encode.cuh"
#include "kernels/cuda/dgc_scatter.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

void EmulatedBackend::dgc_compress(const DgcCompressArgs& args) { cuda::dgc_compress(queue_, *dgc_, args); }
void EmulatedBackend::dgc_encode(const DgcEncodeArgs& args) { cuda::dgc_encode(queue_, *dgc_, args); }
void EmulatedBackend::dgc_decode(const DgcDecodeArgs& args) { cuda::dgc_decode(queue_, *dgc_, args); }
void EmulatedBackend::dgc_apply(const DgcApplyArgs& args) { cuda::dgc_apply(queue_, *dgc_, args); }
void EmulatedBackend::dgc_scatter(const DgcScatterArgs& args) { cuda::dgc_scatter(queue_, args); }
void EmulatedBackend::dgc_step(const DgcStepArgs& args) { cuda::dgc_step(queue_, args); }
void EmulatedBackend::dgc_pack(const DgcPackArgs& args) { cuda::dgc_pack(queue_, args); }
void EmulatedBackend::dgc_pack_half(const DgcPackHalfArgs& args) { cuda::dgc_pack_half(queue_, args); }
void EmulatedBackend::dgc_sum_half(const DgcSumHalfArgs& args) { cuda::dgc_sum_half(queue_, args); }
void EmulatedBackend::dgc_deal(const DgcDealArgs& args) { cuda::dgc_deal(queue_, args); }
void EmulatedBackend::dgc_sum_dealt(const DgcSumDealtArgs& args) { cuda::dgc_sum_dealt(queue_, args); }
void EmulatedBackend::dgc_undeal(const DgcUndealArgs& args) { cuda::dgc_undeal(queue_, *dgc_, args); }
void EmulatedBackend::dgc_settle(const DgcSettleArgs& args) { cuda::dgc_settle(queue_, args); }

}  // namespace dgc
