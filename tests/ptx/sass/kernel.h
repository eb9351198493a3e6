#pragma once

#include <string>

#include "tests/ptx/interpreter/kernel.h"
#include "tests/ptx/sass/cubin.h"
#include "tests/ptx/sass/listing.h"

namespace dgc::ptx::sass {

// A kernel that launch() runs as it runs those of PTX. `file` is what errors call where it is from. Throws PtxError,
// which names the instruction and the kernel, where one is not known.
Kernel make_kernel(const std::string& file, const Function& function, const Resources& resources);

}  // namespace dgc::ptx::sass
