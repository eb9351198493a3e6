#include "tasks/overlap.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "optim/dgc_layout.h"
#include "tasks/make.h"

namespace dgc {
namespace {

// Without groups: with them nothing overlaps.
size_t buckets_of(const Config& config, const ParamLayout& params, int64_t bucket_bytes) {
  const DgcLayout layout = make_dgc_layout(params, make_layout_options(config, config.optimizer.sparsity.final, 1));
  return cut_into_buckets(params, layout, bucket_bytes).size();
}

// Collective.
bool all_on_cpu(const OptimizerContext& context) {
  const std::byte mine{context.backend.device()->on_host()};
  std::vector<std::byte> all(static_cast<size_t>(context.communicator.size()));
  all_gather_host(context.communicator, *context.backend.device(), {&mine, 1}, all);
  return std::ranges::find(all, std::byte{0}) == all.end();
}

// Why "auto" means no overlap, whatever the model and the ranks are; nothing when the config has no reason.
std::string reason_of_config(const Config& config) {
  if (config.optimizer.clip_norm) return "optimizer.clip_norm needs all gradients before the first is compressed";
  if (config.exchange.transport == Transport::dense) return "exchange.transport is \"dense\"";
  if (config.exchange.algorithm == ExchangeAlgorithm::split_reduce) return "exchange.algorithm is \"split_reduce\"";
  if (config.exchange.workers_per_group > 1) return "a group's gradient is known after all of its workers'";
  return "";
}

// The same of the model and the ranks. Collective.
std::string reason_of_run(const Config& config, const OptimizerContext& context, size_t buckets) {
  if (buckets < 2) return fmt::format("the model is one bucket of {:g} MiB or more", config.exchange.bucket_mb);
  if (!all_on_cpu(context)) return "it has not been measured on a GPU yet; \"on\" has it there too";
  return "";
}

}  // namespace

std::optional<int64_t> choose_bucket_bytes(const Config& config, const OptimizerContext& context) {
  const ExchangeOptions& exchange = config.exchange;
  if (config.optimizer.type != OptimizerType::dgc || exchange.overlap == Overlap::off) return std::nullopt;
  const auto bytes = std::max<int64_t>(1, std::llround(exchange.bucket_mb * 1048576));
  if (exchange.overlap == Overlap::on) return bytes;
  // Between threads of a process nothing is on its way for long.
  if (context.communicator.size() == 1 || context.communicator.name() == "threads") return std::nullopt;
  std::string reason = reason_of_config(config);
  const size_t buckets = reason.empty() ? buckets_of(config, context.layout, bytes) : 0;
  if (reason.empty()) reason = reason_of_run(config, context, buckets);
  if (context.communicator.rank() == 0) {
    if (reason.empty()) {
      spdlog::info("gradients are compressed and exchanged in {} buckets while others are computed", buckets);
    } else {
      spdlog::info("exchange.overlap: off, as {}", reason);
    }
  }
  return reason.empty() ? std::optional(bytes) : std::nullopt;
}

}  // namespace dgc
