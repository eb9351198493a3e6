#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

unsigned* CudaBackend::tickets() {
  if (tickets_.data() == nullptr) tickets_ = Buffer(device_, cuda::kTickets * sizeof(unsigned));  // zeroed
  return static_cast<unsigned*>(tickets_.data());
}

}  // namespace dgc
