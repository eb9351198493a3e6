// Replaces nccl.cpp in a build without CUDA and NCCL.
#include "dist/communicator.h"
#include "dist/launch/launch.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

[[noreturn]] void throw_not_built(const Launch& launch) {
  throw_user_error(
      "rank {} of {}: NCCL, which would connect the ranks, is not in this build: build where CMake finds CUDA and "
      "NCCL, {}, or run all workers as threads",
      launch.rank, launch.size, without_nccl(launch));
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): nccl.cpp keeps the device
std::unique_ptr<Communicator> make_nccl_communicator(const Launch& launch, std::shared_ptr<Device>,
                                                     const NcclOptions&) {
  throw_not_built(launch);
}
void require_nccl(const Launch& launch, const Device&) { throw_not_built(launch); }
std::string nccl_description() { return ""; }
std::string remark_on_nccl() { return ""; }

}  // namespace dgc
