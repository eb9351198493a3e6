#pragma once

#include <functional>
#include <memory>

#include "tests/emulation/kernel_runner.h"
#include "tests/ptx/interpreter/counts.h"

namespace dgc::ptx {

// Runs the PTX that nvcc made of src/kernels/cuda in this build; null where it had no nvcc. All callers share what has
// been parsed. Where they are set, DGC_PTX_FOLDER names another folder of *.ptx, and DGC_PTX_RACES says whether
// launches look for data races: "gpu" or "letter", which races.h explains. DGC_PTX_COUNTS names a file to which each
// launch appends what it has executed, one line of JSON with the fields of counts.h.
std::shared_ptr<const emulation::KernelRunner> runner();

// The same for one caller, which is told of each launch. Launches may come from several threads.
using TellCounts = std::function<void(const CountedLaunch&)>;
std::shared_ptr<const emulation::KernelRunner> counting_runner(TellCounts tell);

}  // namespace dgc::ptx
