// In place of nccl.cpp where this build has no CUDA and NCCL.
#include "dist/communicator.h"
#include "tensor/errors.h"

namespace dgc {

std::unique_ptr<Communicator> make_nccl_communicator(const Launch&, std::shared_ptr<Device>, const NcclOptions&) {
  throw_user_error("NCCL is not in this build: build where CMake finds CUDA and NCCL, or run all workers as threads");
}
std::string nccl_description() { return ""; }

}  // namespace dgc
