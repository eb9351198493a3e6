#include "tools/step_model.h"

#include <algorithm>
#include <functional>
#include <map>

#include "config/table.h"
#include "tools/planned_rank.h"

namespace dgc {
namespace {

constexpr double kOfMemory = 0.7, kOfProducts = 0.6;  // of the peaks, the first fitted and the second assumed

// Peaks of dense products and of memory, from NVIDIA's data sheets (A100 80GB SXM, H100 SXM, H200 SXM).
constexpr DeviceModel modelled(std::string_view name, double bytes, double half, double tf32, double fp32) {
  return {name, kOfMemory * bytes, kOfProducts * half, kOfProducts * tf32, kOfProducts * fp32};
}
constexpr DeviceModel kModels[] = {modelled("a100", 2.039e12, 312e12, 156e12, 19.5e12),
                                   modelled("h100", 3.35e12, 989e12, 494e12, 67e12),
                                   modelled("h200", 4.8e12, 989e12, 494e12, 67e12)};

// What a call takes, and for how much of that no other lane could use the device.
struct Seconds {
  double alone, busy;
};

Seconds seconds_of(const OpCost& cost, const DeviceModel& device, Precision precision) {
  const double speed = cost.half                      ? device.half_flops
                       : precision == Precision::tf32 ? device.tf32_flops
                                                      : device.fp32_flops;
  const auto starts = static_cast<double>(std::max<int64_t>(cost.launches, cost.serial_steps));
  const double busy = std::max(
      {static_cast<double>(cost.bytes) / device.bytes_per_second, cost.flops / speed, starts * device.start_seconds});
  return {std::max({busy, static_cast<double>(cost.serial_steps) * device.serial_step_seconds,
                    static_cast<double>(cost.launches) * device.launch_seconds}),
          busy};
}

// The part of the time of lanes alone that they take beside each other.
double share_beside(const std::vector<OpCost>& costs, const DeviceModel& device, Precision precision) {
  std::map<int, double> lanes;
  double busy = 0, alone = 0;
  for (const OpCost& cost : costs) {
    if (cost.lane == 0) continue;
    const Seconds seconds = seconds_of(cost, device, precision);
    lanes[cost.lane] += seconds.alone;
    alone += seconds.alone;
    busy += seconds.busy;
  }
  double longest = 0;
  for (const auto& [lane, seconds] : lanes) longest = std::max(longest, seconds);
  return alone > 0 ? std::max(longest, busy) / alone : 1;
}

void add(ModelledPart& part, const OpCost& cost, double seconds) {
  ++part.calls;
  part.launches += cost.launches;
  part.bytes += cost.bytes;
  part.flops += cost.flops;
  part.seconds += seconds;
}

ModelledPart& part_named(std::vector<ModelledPart>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &ModelledPart::name);
  if (found != parts.end()) return *found;
  return parts.emplace_back(ModelledPart{.name = name});
}

}  // namespace

std::vector<std::string> device_model_names() { return names_of(kModels); }

const DeviceModel& device_model(const std::string& name) { return row_named(kModels, name); }

StepModel model_step(const Config& config, const DeviceModel& device) {
  StepModel model;
  model.total.name = "step";
  double dgc = 0;
  Config on_gpu = config;
  on_gpu.device = "cuda:0";
  on_gpu.workers_at_once = most_at_once(config);
  const std::vector<OpCost> costs = PlannedRank(on_gpu).step();
  const double beside = share_beside(costs, device, config.precision);
  for (const OpCost& cost : costs) {
    const double seconds = seconds_of(cost, device, config.precision).alone * (cost.lane > 0 ? beside : 1);
    const std::string phase = cost.phase.empty() ? "other" : cost.phase;
    add(model.total, cost, seconds);
    add(part_named(model.phases, phase), cost, seconds);
    add(part_named(model.ops, cost.op), cost, seconds);
    if (std::string_view(cost.op).starts_with("dgc_")) dgc += seconds;
  }
  std::ranges::stable_sort(model.ops, std::greater<>(), &ModelledPart::seconds);
  model.dgc_share = dgc / model.total.seconds;
  return model;
}

}  // namespace dgc
