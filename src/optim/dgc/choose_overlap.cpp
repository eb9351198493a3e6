#include "optim/dgc/choose_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "optim/dgc/layout.h"

namespace dgc {
namespace {

// Collective.
bool all_on_cpu(const OptimizerContext& context) {
  const std::byte mine{context.backend.device()->on_host()};
  const auto all = gather_host<std::byte>(context.communicator, *context.backend.device(), {&mine, 1});
  return std::ranges::find(all, std::byte{0}) == all.end();
}

// The reason why the options rule out overlap for any model and any ranks; empty if they do not.
std::string reason_of_options(const DgcOptions& options, int64_t workers_per_group) {
  if (options.sgd.clip_norm) return "optimizer.clip_norm needs all gradients before the first is compressed";
  if (options.transport == Transport::dense) return "exchange.transport is \"dense\"";
  if (options.algorithm != ExchangeAlgorithm::all_gather) {
    const std::string_view name = kExchangeAlgorithmNames[static_cast<size_t>(options.algorithm)];
    return fmt::format("exchange.algorithm is \"{}\"", name);
  }
  if (workers_per_group > 1) return "a group's gradient is known after all of its workers'";
  return "";
}

}  // namespace

int64_t bucket_bytes(double mib) { return std::max<int64_t>(1, std::llround(mib * 1048576)); }

OverlapChoice choose_overlap(const DgcOptions& options, double bucket_mib, const OptimizerContext& context,
                             int64_t workers_per_group) {
  // Between threads of one process the exchange takes too little time to be worth hiding.
  if (context.communicator.size() == 1 || !context.communicator.between_processes()) return {};
  const auto off = [](const std::string& reason) {
    return OverlapChoice{std::nullopt, "exchange.overlap: off, as " + reason};
  };
  const std::string reason = reason_of_options(options, workers_per_group);
  if (!reason.empty()) return off(reason);
  DgcLayout layout = make_dgc_layout(context.layout, options, 0);  // buckets are the same at every sparsity
  layout.bucket_bytes = bucket_bytes(bucket_mib);
  const size_t buckets = cut_into_buckets(context.layout, layout).size();
  if (buckets < 2) return off(fmt::format("the whole gradient is one bucket (exchange.bucket_mb = {:g})", bucket_mib));
  if (!all_on_cpu(context)) return off("it has not run between several GPUs yet; \"on\" switches it on there too");
  return {layout.bucket_bytes,
          fmt::format("gradients are compressed and exchanged in {} buckets while others are computed", buckets)};
}

}  // namespace dgc
