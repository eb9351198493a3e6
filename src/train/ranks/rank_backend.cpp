#include "train/ranks/rank_backend.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "config/enum_names.h"
#include "run/conv_plans_file.h"
#include "tensor/cores.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// More threads than cores would only get in each other's way. Without a launcher the ranks of a run are threads of one
// process; a launcher may have bound each rank to cores of its own.
int compute_threads(const Config& config, const Launch& launch) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  const int usable = usable_cores();
  if (launch.size <= 1) return std::max(1, usable / static_cast<int>(config.ranks));
  const int cores = machine_cores(), share = std::max(1, cores / launch.local_size);
  if (usable < share && launch.launcher == "mpirun" && launch.rank == 0) {
    spdlog::warn("mpirun has bound rank 0 to {} of {} cores; mpirun --bind-to none lets ranks share all of them",
                 usable, cores);
  }
  return std::min(usable, share);
}

// The number of a GPU has the digits that a config's "cuda:N" may have.
std::string gpu_called(const std::string& number) {
  if (number.size() > 3 || number.find_first_not_of("0123456789") != std::string::npos) {
    throw_user_error("{}={}: it has to be the number of a GPU, such as 0", kGpuVariable, number);
  }
  return "cuda:" + number;
}

std::string device_for(const Config& config, const Launch& launch) {
  if (config.device != "auto") return config.device;
  if (launch.size == 1) {
    const std::optional<std::string> gpu = process_environment(kGpuVariable);
    return gpu ? gpu_called(*gpu) : config.device;
  }
  const std::vector<int> gpus = cuda_devices();
  const int count = static_cast<int>(gpus.size());
  const bool alone = config.exchange.communicator == CommunicatorType::nccl;  // with MPI, ranks may share a GPU
  if (count == 0 && !alone) return "cpu";
  const int mine = alone ? choose_gpu(launch, count) : launch.local_rank % count;
  return fmt::format("cuda:{}", gpus.at(static_cast<size_t>(mine)));
}

}  // namespace

Fp32Math fp32_math(const Config& config) {
  if (config.precision == Precision::bf16) return Fp32Math::bf16;
  return config.precision == Precision::tf32 ? Fp32Math::tf32 : Fp32Math::exact;
}

std::string gpu_in_turn(const Config& config, int place) {
  if (config.device != "auto") return "";
  const std::vector<int> gpus = cuda_devices();
  return gpus.empty() ? "" : std::to_string(gpus[static_cast<size_t>(place) % gpus.size()]);
}

bool share_gpus(const Config& config, int trainings) {
  if (is_cpu(config.device)) return false;
  return trainings > (config.device == "auto" ? std::ssize(cuda_devices()) : 1);
}

std::unique_ptr<Backend> make_backend(const Config& config, const Launch& launch) {
  const bool bf16 = config.precision == Precision::bf16;
  auto backend = make_backend(device_for(config, launch), compute_threads(config, launch), fp32_math(config),
                              read_conv_plans(config));
  if (config.precision == Precision::fp32 || backend->supports(DType::bf16)) return backend;
  if (bf16 && cpu_multiplies_bf16()) return backend;
  if (bf16) {
    throw_user_error(
        "precision: bf16 needs a GPU or a processor with AVX-512 BF16 or AMX, and this machine's processor has "
        "neither; set precision to \"fp32\"");
  }
  throw_user_error("precision: {} needs a GPU, and this run uses the device {}; set precision to \"fp32\"{}",
                   enum_name(config.precision), backend->name(), cpu_multiplies_bf16() ? " or \"bf16\"" : "");
}

}  // namespace dgc
