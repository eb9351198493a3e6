#pragma once

#include "kernels/cuda/model.h"
#include "tests/emulation/emulate.h"
#include "tests/fake_cuda/kernels.h"

// In the place of src/kernels/cuda/global.cuh, which says what a kernel is. nvcc registers every kernel with the CUDA
// runtime under the address of a host function. The function here is that host function, and is never called: the fake
// runtime finds the registered body and emulates it.
namespace dgc::cuda {

template <typename Kernel>
void emulate_kernel(const void* args, const emulation::Launch& how) {
  const auto& typed = *static_cast<const typename Kernel::Args*>(args);
  emulation::emulate(how, [&](typename Kernel::Shared& shared) { Kernel::run(typed, shared); });
}

template <typename Kernel>
void global(typename Kernel::Args);

template <typename Kernel>
inline const bool kRegistered = fake_cuda::register_kernel(reinterpret_cast<const void*>(&global<Kernel>),
                                                           {.name = Kernel::kName,
                                                            .block = Kernel::kBlock,
                                                            .args_bytes = sizeof(typename Kernel::Args),
                                                            .shared_bytes = sizeof(typename Kernel::Shared),
                                                            .emulate = emulate_kernel<Kernel>});

template <typename Kernel>
void global(typename Kernel::Args) {
  static_cast<void>(kRegistered<Kernel>);
}

}  // namespace dgc::cuda
