// What dgc_on_fake_cuda, which is dgc itself, takes from its environment: DGC_FAKE_GPUS, the number of GPUs, and beside
// it DGC_FAKE_DEATH, the rank that dies while NCCL connects.
#include <cstdlib>

#include "tests/fake_cuda/fake_cuda.h"

namespace dgc::fake_cuda {
namespace {

[[maybe_unused]] const bool kSet = [] {
  const char* gpus = std::getenv("DGC_FAKE_GPUS");
  const char* dying = std::getenv("DGC_FAKE_DEATH");
  if (gpus != nullptr) set({.devices = std::atoi(gpus), .dying_rank = dying == nullptr ? -1 : std::atoi(dying)});
  return true;
}();

}  // namespace
}  // namespace dgc::fake_cuda
