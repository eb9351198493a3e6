// What dgc_on_fake_cuda, which is dgc itself, takes from its environment: DGC_FAKE_GPUS, the number of GPUs.
#include <cstdlib>

#include "tests/fake_cuda/fake_cuda.h"

namespace dgc::fake_cuda {
namespace {

[[maybe_unused]] const bool kSet = [] {
  const char* gpus = std::getenv("DGC_FAKE_GPUS");
  if (gpus != nullptr) set({.devices = std::atoi(gpus)});
  return true;
}();

}  // namespace
}  // namespace dgc::fake_cuda
