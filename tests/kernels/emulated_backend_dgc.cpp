#include "kernels/cuda/dgc_apply.cuh"
#include "kernels/cuda/dgc_compress.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

void EmulatedBackend::dgc_compress(const DgcCompressArgs& args) { cuda::dgc_compress(queue_, *dgc_, args); }
void EmulatedBackend::dgc_apply(const DgcApplyArgs& args) { cuda::dgc_apply(queue_, *dgc_, args); }
void EmulatedBackend::dgc_pack(const DgcPackArgs& args) { cuda::dgc_pack(queue_, args); }

}  // namespace dgc
