#include "kernels/backend.h"

#include "tensor/errors.h"

namespace dgc {

std::unique_ptr<Backend> make_backend(const std::string& device, int threads) {
  if (device == "auto" || device == "cpu") return make_cpu_backend(threads);
  throw_user_error("device: '{}' is not available, this build has the CPU only (use \"auto\" or \"cpu\")", device);
}

}  // namespace dgc
