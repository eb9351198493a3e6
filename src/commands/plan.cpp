#include "tools/plan.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/overrides.h"
#include "config/config.h"
#include "run/number_text.h"
#include "tasks/make.h"
#include "tensor/counted.h"
#include "tools/projection.h"
#include "tools/step_model.h"
#include "tools/units.h"

namespace dgc {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / 1048576; }

// With so many digits, and with all before the point: "73.81", "1920336".
std::string digits(double value, int most) {
  return value < std::pow(10, most) - 0.5 ? fmt::format("{:.{}g}", value, most) : fmt::format("{:.0f}", value);
}

// "4432 B", "0.352 MiB"
std::string size_text(int64_t bytes) {
  return bytes < 100'000 ? fmt::format("{} B", bytes) : fmt::format("{:.3f} MiB", mib(bytes));
}

// "0.352 MiB 276.7x"
std::string message(int64_t bytes, int64_t dense) {
  const double ratio = static_cast<double>(dense) / static_cast<double>(bytes);
  return fmt::format("{:>11} {:>6.1f}x", size_text(bytes), ratio);
}

// A message is sent after so many steps, and its ratio is to the dense gradients of all of them.
void print_row(const PlanRow& row, size_t name_width, int64_t steps) {
  fmt::print("{:<{}} {:>18} {:>11} {:>10.3f} {:>8}", row.name, name_width, row.shape.rank() > 0 ? row.shape.str() : "",
             row.parameters, mib(row.dense_bytes()), row.kept > 0 ? std::to_string(row.kept) : "dense");
  for (const int64_t bytes : {row.paper_bytes, row.sent_bytes}) {
    fmt::print(" {:>19}", message(bytes, steps * row.dense_bytes()));
  }
  fmt::print("\n");
}

void print_format(const std::string& name, int64_t bytes, int64_t dense, double entry_bits, double break_even) {
  fmt::print("  {:<16} {:>10} {:>9.3f} {:>8.1f}x {:>10.2f} {:>10.3f} %\n", name, bytes, mib(bytes),
             static_cast<double>(dense) / static_cast<double>(bytes), entry_bits, 100 * break_even);
}

// "per step", or "per exchange, after 16 steps"
std::string how_often(const Config& config) {
  const int64_t steps = config.exchange.every_steps;
  return steps == 1 ? "per step" : fmt::format("per exchange, after {} steps", steps);
}

void print_formats(const Plan& plan, const Config& config, int64_t workers) {
  fmt::print(
      "\n{} parameters, {:.2f} MiB dense. Sent by each worker {} as messages, in every format of exchange.wire:\n",
      plan.total.parameters, mib(plan.total.dense_bytes()), how_often(config));
  const int64_t dense = config.exchange.every_steps * plan.total.dense_bytes();
  fmt::print("  {:<16} {:>10} {:>9} {:>9} {:>10} {:>12}\n", "", "bytes", "MiB", "ratio", "bits/entry", "break-even");
  print_format("paper48", plan.total.paper_bytes, dense, 48, break_even_sparsity(workers, 6.0));
  for (const PlanFormat& f : plan.formats) {
    print_format(f.name + (f.format == config.optimizer.dgc.wire ? " *" : ""), f.sent_bytes, dense, f.entry_bits,
                 break_even_sparsity(workers, f.format));
  }
  fmt::print("  * as configured. Below the break-even sparsity, a dense ring all-reduce of {} receives less.\n",
             counted(workers, "worker"));
}

// "8 workers", or "2 groups of 4 workers"
std::string who_compresses(const Config& config, int64_t workers) {
  const int64_t groups = compressing_workers(config, workers);
  return groups == workers
             ? counted(workers, "worker")
             : fmt::format("{} of {} workers", counted(groups, "group"), config.exchange.workers_per_group);
}

void print_phases(const Config& config, const Plan& plan, int64_t workers) {
  const auto dense = static_cast<double>(plan.total.dense_bytes());
  fmt::print("\nHow what is compressed travels between {}, and what each sends {}, with all else:\n",
             who_compresses(config, workers), how_often(config));
  fmt::print("  {:<16} {:>10} {:>9} {:>9} {:>12}\n", "sparsity", "bytes", "MiB", "ratio", "bytes/sample");
  for (const PlanPhase& phase : plan_phases(config, workers)) {
    fmt::print("  {:<16} {:>10} {:>9.3f} {:>8.1f}x {:>12}  {}\n", fmt::format("{:.6g} %", 100 * phase.sparsity),
               phase.sent_bytes, mib(phase.sent_bytes),
               static_cast<double>(config.exchange.every_steps) * dense / static_cast<double>(phase.sent_bytes),
               digits(phase.bytes_per_sample, 6), travel_name(phase.travel));
  }
}

// The link on which what reaches a worker takes a twentieth of the time of a step.
void print_link(const Config& config, const std::vector<int64_t>& workers, double step_seconds) {
  constexpr double kShare = 0.05;
  for (const int64_t n : workers) {
    const double bits = 8 * step_traffic(config, n).own.bytes;
    if (bits == 0) continue;  // one worker, who has nobody to hear from
    fmt::print(
        "  the exchange of {} takes {:g} % of the time of such steps on a link of {} Mbps, without its latency\n",
        who_compresses(config, n), 100 * kShare, digits(bits / (kShare * step_seconds) / 1e6, 4));
  }
}

// Resident memory of this process, which has made the model's primitives but none of the memory in PlanMemory. 0 where
// unknown.
int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void print_memory(const Plan& plan, const Config& config) {
  const PlanMemory& m = plan.memory;
  fmt::print("\nMemory of one rank ({} of {}), MiB; the data set and its loader come on top\n", config.workers_per_rank,
             counted(config.workers(), "worker"));
  constexpr std::pair<const char*, MemoryUse> kUses[] = {
      {"weights", MemoryUse::weights},           {"gradients", MemoryUse::gradients},
      {"u and v", MemoryUse::residuals},         {"momentum and sum", MemoryUse::momentum},
      {"messages", MemoryUse::messages},         {"activations", MemoryUse::activations},
      {"batches", MemoryUse::batches},           {"statistics, tables", MemoryUse::other},
      {"scratch, estimated", MemoryUse::scratch}};
  const auto print = [](const char* name, int64_t bytes) { fmt::print("  {:<20} {:>10.2f}\n", name, mib(bytes)); };
  for (const auto& [name, use] : kUses) print(name, m.of(use));
  const int64_t program = resident_bytes();
  print("device total", m.total());
  print("this program", program);
  print("process total", m.total() + program);
  if (plan.each_more_at_once > 0) {
    fmt::print("  and {:.2f} for each further worker that is computed at once, if the GPU has room (workers_at_once)\n",
               mib(plan.each_more_at_once));
  }
}

// An epoch ends with an exchange; between two, a checkpoint may hold more.
void print_checkpoint(const PlanCheckpoint& checkpoint) {
  fmt::print(
      "A checkpoint at the end of an epoch takes at most {} for the workers of each rank and {} for weights{}, and "
      "a few KiB to name the tensors\n",
      bytes_text(static_cast<double>(checkpoint.workers)), bytes_text(static_cast<double>(checkpoint.shared)),
      checkpoint.has_momentum ? " and momentum" : "");
}

struct Cluster {
  Link link;
  double step_seconds = 0;  // a step of one worker
};

void print_projection(const Config& config, const std::string& wire, const std::vector<int64_t>& workers,
                      const Cluster& cluster) {
  fmt::print("\nProjected: {:g} ms of a step on one worker, then the exchange at {:g} Mbps and {:g} us per message\n",
             1e3 * cluster.step_seconds, cluster.link.bits_per_second / 1e6, 1e6 * cluster.link.latency_seconds);
  fmt::print("  {:>7} {:>21} {:>21} {:>21}\n", "", "dense fp32", "dense fp16", "dgc " + wire);
  fmt::print("  {:>7}", "workers");
  for (int i = 0; i < 3; ++i) fmt::print(" {:>11} {:>9}", "ms", "speed-up");
  fmt::print("\n");
  for (const ProjectionRow& row : project(config, workers, cluster.link, cluster.step_seconds)) {
    fmt::print("  {:>7}", row.workers);
    for (const Projected& p : {row.dense, row.half, row.dgc}) {
      fmt::print(" {:>11.2f} {:>8.1f}x", 1e3 * p.seconds, p.speed_up);
    }
    fmt::print("  {}\n", travel_name(row.travel));
  }
  print_link(config, workers, cluster.step_seconds);
}

void print_plan(const Plan& plan, const Config& config, const std::string& wire, const std::vector<int64_t>& workers) {
  size_t width = 5;
  for (const PlanRow& row : plan.tensors) width = std::max(width, row.name.size());
  const bool travels_otherwise = plan_phases(config, workers.front()).back().sent_bytes != plan.total.sent_bytes;
  if (compresses(config.optimizer.type)) {
    fmt::print("{} at sparsity {:.4g} %: what each worker sends {}{}\n\n", config.name, 100 * plan.sparsity,
               how_often(config), travels_otherwise ? " where messages go to all, as they do not here (below)" : "");
  } else {
    const bool half = config.exchange.dense_values == DenseValues::fp16;
    fmt::print("{} trains with sgd: each worker sends {} {}. With dgc at sparsity {:.4g} % it would send:\n\n",
               config.name, size_text(plan.total.dense_bytes() / (half ? 2 : 1)), how_often(config),
               100 * plan.sparsity);
  }
  fmt::print("{:<{}} {:>18} {:>11} {:>10} {:>8} {:>19} {:>19}\n", "tensor", width, "shape", "parameters", "dense MiB",
             "kept", "paper48", wire);
  for (const PlanRow& row : plan.tensors) print_row(row, width, config.exchange.every_steps);
  print_row(plan.total, width, config.exchange.every_steps);
  if (std::ranges::any_of(plan.tensors, [](const PlanRow& row) { return row.kept == 0; })) {
    fmt::print("dense: small tensors (biases and normalisation, 1-D) travel whole, as exchange.small_tensors says\n");
  }
  print_formats(plan, config, compressing_workers(config, workers.front()));
  for (const int64_t n : workers) print_phases(config, plan, n);
  print_memory(plan, config);
  print_checkpoint(plan.checkpoint);
}

void print_parts(const char* what, std::span<const ModelledPart> parts, double total) {
  fmt::print("  {:<26} {:>7} {:>9} {:>10} {:>10} {:>10} {:>8}\n", what, "calls", "launches", "MB moved", "GFLOP", "ms",
             "share");
  for (const ModelledPart& part : parts) {
    fmt::print("  {:<26} {:>7} {:>9} {:>10.1f} {:>10.1f} {:>10.3f} {:>6.2f} %\n", part.name, part.calls, part.launches,
               static_cast<double>(part.bytes) / 1e6, part.flops / 1e9, 1e3 * part.seconds, 100 * part.seconds / total);
  }
}

void print_step_model(const Config& config, const DeviceModel& device, const std::vector<int64_t>& workers) {
  constexpr size_t kLargest = 10;
  const StepModel model = model_step(config, device);
  const double total = model.total.seconds;
  fmt::print("\nModelled, not measured: a step of one rank ({}){} on one {}, without the network\n",
             counted(config.workers_per_rank, "worker"),
             config.exchange.every_steps > 1 ? " that ends with an exchange" : "", device.name);
  print_parts("phase", model.phases, total);
  print_parts("", {&model.total, 1}, total);
  print_parts("what takes longest", std::span(model.ops).first(std::min(kLargest, model.ops.size())), total);
  fmt::print("  the ops of DGC take {:.2f} % of the step\n", 100 * model.dgc_share);
  print_link(config, workers, total);
}

struct PlanOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> workers;  // each is a list with commas
  std::string bandwidth, latency = "50us";
  double step_ms = 0;
  std::string device_model;
};

void run_plan(const PlanOptions& options) {
  Config config = load_config(options.config, options.overrides);
  std::optional<Cluster> cluster;
  if (!options.bandwidth.empty()) {
    cluster = {{parse_bandwidth(options.bandwidth, "--bandwidth"), parse_duration(options.latency, "--latency")},
               options.step_ms / 1e3};
  }
  std::vector<int64_t> workers;
  for (const std::string& list : options.workers) {
    for (const std::string& entry : split_list(list)) workers.push_back(std::stoll(entry));
  }
  if (workers.empty()) workers = {config.workers()};
  for (const int64_t n : workers) check_groups(config, n);  // before anything is printed
  // The memory is that of the first number of workers, for which a launcher will start ranks; where these workers are
  // no whole ranks, it is that of the config's own.
  if (workers.front() % config.workers_per_rank == 0) config.ranks = workers.front() / config.workers_per_rank;
  const DeviceModel* const device = options.device_model.empty() ? nullptr : &device_model(options.device_model);
  const Plan plan = make_plan(config);
  const std::string wire = std::ranges::find(plan.formats, config.optimizer.dgc.wire, &PlanFormat::format)->name;
  print_plan(plan, config, wire, workers);
  if (device != nullptr) print_step_model(config, *device, workers);
  if (cluster) print_projection(config, wire, workers, *cluster);
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Say what a config will send and how much memory it takes, before training");
  command->add_option("CONFIG", options->config, "config file")->required();
  add_overrides(*command, options->overrides, "override one key: --set optimizer.sparsity=0.99 (repeatable)");
  constexpr int64_t kMostWorkers = 1 << 20;
  command->add_option("--workers", options->workers, "numbers of workers, as in 4,64 (default: the config's)")
      ->take_all()
      ->expected(1)
      ->check(list_of(whole_number(1, kMostWorkers)));
  CLI::Option* step =
      command->add_option("--step-ms", options->step_ms, "measured milliseconds of a step on one worker")
          ->check(number(1e-3, 1e9));
  CLI::Option* bandwidth =
      command->add_option("--bandwidth", options->bandwidth, "project steps on such a network, as in 1Gbps")
          ->check(not_empty())
          ->needs(step);
  step->needs(bandwidth);
  command->add_option("--latency", options->latency, "of each of its messages, as in 50us (the default)")
      ->needs(bandwidth);
  command
      ->add_option("--device-model", options->device_model,
                   "model a step on such a GPU by what its ops move and compute")
      ->check(one_of(device_model_names()));
  command->footer(
      "Example:\n  dgc plan configs/paper/resnet50_imagenet.json\n"
      "  dgc plan configs/paper/resnet50_imagenet.json --workers 8,48 --bandwidth 1Gbps --step-ms 120\n\n"
      "paper48 is the DGC paper's count: a 32-bit value and a 16-bit run length per entry, no header. The others are\n"
      "what messages really take, with header and padding (docs/wire_format.md). The projection's formulas, and what\n"
      "they leave out, are in docs/exchange.md; dgc bench train CONFIG measures a step.");
  command->callback([options] { run_plan(*options); });
}

}  // namespace dgc
