#include "tests/kernels/emulated_backend.h"

#include "kernels/cuda/dgc_memory.h"

namespace dgc {

EmulatedBackend::EmulatedBackend(uint64_t seed)
    : CpuBackend(1), queue_(*device(), seed), dgc_(std::make_shared<cuda::DgcScratch>(device())) {}
EmulatedBackend::~EmulatedBackend() = default;

}  // namespace dgc
