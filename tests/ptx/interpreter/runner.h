#pragma once

#include <memory>

#include "tests/emulation/kernel_runner.h"

namespace dgc::ptx {

// Runs the PTX that nvcc made of src/kernels/cuda in this build; null where it had no nvcc. All callers share what has
// been parsed. Where they are set, DGC_PTX_FOLDER names another folder of *.ptx, and DGC_PTX_RACES says whether
// launches look for data races: "gpu" or "letter", which races.h explains.
std::shared_ptr<const emulation::KernelRunner> runner();

}  // namespace dgc::ptx
