#pragma once

// In the place of src/kernels/cuda/model.h: threads of kernels are the emulation's.
#include "tests/emulation/kernels/cuda/model.h"
