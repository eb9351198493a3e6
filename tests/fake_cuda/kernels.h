#pragma once

#include <cstddef>

#include "tests/emulation/emulate.h"

namespace dgc::fake_cuda {

// What the fake CUDA runtime must know of a kernel to launch it.
struct Kernel {
  const char* name;
  int block;  // the only number of threads of a block that it is compiled for
  size_t args_bytes, shared_bytes;
  void (*emulate)(const void* args, const emulation::Launch&);
};

// Makes the kernel known under the address of its host function. Returns true.
bool register_kernel(const void* host_function, const Kernel&);

}  // namespace dgc::fake_cuda
