#pragma once

#include <memory>

#include "tests/emulation/kernel_runner.h"
#include "tests/ptx/sass/library.h"

namespace dgc::ptx::sass {

// The machine code of this build's kernels, or of the folder that DGC_SASS_FOLDER names. All callers share it.
Library& library();

// Runs it: the backend cuda-sass. It does not look for data races: ptxas makes loops around ordinary loads of some
// atomics, and joins loads, so machine code has races where the program has none.
std::shared_ptr<const emulation::KernelRunner> runner();

}  // namespace dgc::ptx::sass
