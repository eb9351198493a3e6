#include "train/ranks.h"

#include <xxhash.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "config/config.h"
#include "config/enum_names.h"
#include "dist/rendezvous.h"
#include "dist/watch.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

std::string_view name_of(CommunicatorType type) { return kEnumNames<CommunicatorType>[static_cast<size_t>(type)]; }

// All ranks write one run, so no key may differ between them.
uint64_t config_hash(const Config& config) {
  const std::string text = resolved_json(config);
  return XXH64(text.data(), text.size(), 0);
}

void on_threads(const Config& config, const Launch& launch, const std::function<void(Backend&, Communicator&)>& body) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  if (config.ranks > 1) {
    communicators = make_thread_communicators(static_cast<int>(config.ranks));
  } else {
    communicators.push_back(make_single_communicator());
  }
  run_ranks(communicators, [&](Communicator& communicator) {
    const auto backend = make_backend(config, launch);
    body(*backend, communicator);
  });
}

void on_this_process(const Config& config, const Launch& launch,
                     const std::function<void(Backend&, Communicator&)>& body) {
  NcclOptions options;
  options.config = config_hash(config);
  const auto share = [&](std::span<std::byte> place) {
    share_from_rank0(launch, {options.config, options.start_timeout}, place);
  };
  Watch watch(
      {launch.rank, launch.size, std::chrono::seconds(config.exchange.failure_timeout_s), options.start_timeout},
      share);
  options.while_waiting = [&] { watch.check(); };
  std::unique_ptr<Communicator> communicator;  // outlives the backend, which may have recorded work of its
  std::unique_ptr<Backend> backend;
  try {
    backend = make_backend(config, launch);
    communicator = make_nccl_communicator(launch, backend->device(), options);
    body(*backend, *communicator);
  } catch (const PeerFailed& error) {
    const std::string cause = watch.cause_of(error.what());
    if (communicator) communicator->abort(cause);
    throw PeerFailed(cause);
  } catch (const std::exception& error) {
    watch.fail(error.what());
    if (communicator) communicator->abort(error.what());
    throw;
  }
}

}  // namespace

Config with_launch(Config config, const Launch& launch) {
  if (launch.size == 1) return config;
  CommunicatorType& communicator = config.exchange.communicator;
  if (communicator == CommunicatorType::automatic) communicator = CommunicatorType::nccl;
  if (communicator != CommunicatorType::nccl) {
    throw_user_error("exchange.communicator: '{}' is for one process, and {} has started {}; use \"nccl\"",
                     name_of(communicator), launch.launcher, launch.size);
  }
  if (config.ranks != 1 && config.ranks != launch.size) {
    throw_user_error("ranks: {} does not fit the {} processes that {} has started; leave it out", config.ranks,
                     launch.size, launch.launcher);
  }
  config.ranks = launch.size;
  return config;
}

std::unique_ptr<Backend> make_backend(const Config& config, const Launch& launch) {
  // Shared fairly: without a launcher the ranks of a run are threads of one process on one machine.
  const int here = launch.size > 1 ? 1 : static_cast<int>(config.ranks);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = config.threads > 0 ? static_cast<int>(config.threads) : std::max(1, cores / here);
  const bool own_gpu = launch.size > 1 && config.device == "auto";
  const std::string device = own_gpu ? fmt::format("cuda:{}", choose_gpu(launch, cuda_devices())) : config.device;
  auto backend = make_backend(device, threads, config.precision == Precision::tf32 ? Fp32Math::tf32 : Fp32Math::exact);
  if (config.precision != Precision::fp32 && !backend->supports(DType::bf16)) {
    throw_user_error("precision: {} needs a GPU, and this run uses the device {}; set precision to \"fp32\"",
                     kEnumNames<Precision>[static_cast<size_t>(config.precision)], backend -> name());
  }
  return backend;
}

void on_ranks(const Config& config, const Launch& launch, const std::function<void(Backend&, Communicator&)>& body) {
  if (config.exchange.communicator == CommunicatorType::nccl) {
    on_this_process(config, launch, body);
  } else {
    on_threads(config, launch, body);
  }
}

}  // namespace dgc
