#include "train/plan.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "commands/commands.h"
#include "config/config.h"

namespace dgc {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / 1048576; }

// "0.352 MiB 276.7x"
std::string message(int64_t bytes, int64_t dense) {
  const double ratio = static_cast<double>(dense) / static_cast<double>(bytes);
  const std::string size = bytes < 100'000 ? fmt::format("{} B", bytes) : fmt::format("{:.3f} MiB", mib(bytes));
  return fmt::format("{:>11} {:>6.1f}x", size, ratio);
}

void print_row(const PlanRow& row, size_t name_width) {
  fmt::print("{:<{}} {:>18} {:>11} {:>10.3f} {:>8}", row.name, name_width, row.shape.rank() > 0 ? row.shape.str() : "",
             row.parameters, mib(row.dense_bytes()), row.kept > 0 ? std::to_string(row.kept) : "dense");
  for (const int64_t bytes : row.sent_bytes) fmt::print(" {:>19}", message(bytes, row.dense_bytes()));
  fmt::print("\n");
}

void print_break_even(int64_t workers) {
  fmt::print("\nBreak-even with {} workers: below this sparsity a dense ring all-reduce receives less\n", workers);
  constexpr std::array<double, kWireFormats.size()> kBytesPerEntry = {6, 8, 6, 4, 3.4375};
  for (size_t f = 0; f < kWireFormats.size(); ++f) {
    fmt::print("  {:<14} {:>7.3f} %\n", wire_format_name(kWireFormats[f]),
               100 * break_even_sparsity(workers, kBytesPerEntry[f]));
  }
}

// What this process holds now: it has made the model's primitives but none of the memory above. 0 where unknown.
int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void print_memory(const PlanMemory& m, const Config& config) {
  fmt::print("\nMemory of one rank ({} workers), MiB; the data set and its loader come on top\n",
             config.workers_per_rank);
  const int64_t program = resident_bytes();
  const std::pair<const char*, int64_t> parts[] = {
      {"weights", m.weights},          {"gradients", m.gradients},
      {"u and v", m.residuals},        {"momentum and sum", m.momentum},
      {"messages", m.messages},        {"activations", m.activations},
      {"statistics, images", m.other}, {"device total", m.total()},
      {"this program", program},       {"process total", m.total() + program}};
  for (const auto& [name, bytes] : parts) fmt::print("  {:<20} {:>10.2f}\n", name, mib(bytes));
}

void print_plan(const Plan& plan, const Config& config, int64_t workers) {
  size_t width = 5;
  for (const PlanRow& row : plan.tensors) width = std::max(width, row.name.size());
  fmt::print("{} at sparsity {:.4g} %: what each worker sends per step (1-D tensors travel dense)\n\n", config.name,
             100 * plan.sparsity);
  fmt::print("{:<{}} {:>18} {:>11} {:>10} {:>8}", "tensor", width, "shape", "parameters", "dense MiB", "kept");
  for (const WireFormat format : kWireFormats) fmt::print(" {:>19}", wire_format_name(format));
  fmt::print("\n");
  for (const PlanRow& row : plan.tensors) print_row(row, width);
  print_row(plan.total, width);

  fmt::print("\n{} parameters, {:.2f} MiB dense\n", plan.total.parameters, mib(plan.total.dense_bytes()));
  for (size_t f = 0; f < kWireFormats.size(); ++f) {
    const int64_t bytes = plan.total.sent_bytes[f];
    fmt::print("  {:<14} {:>8.3f} MiB {:>8.1f}x\n", wire_format_name(kWireFormats[f]), mib(bytes),
               static_cast<double>(plan.total.dense_bytes()) / static_cast<double>(bytes));
  }
  print_break_even(workers);
  print_memory(plan.memory, config);
}

}  // namespace

void add_plan_command(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    int64_t workers = 0;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("plan", "Say what a config will send and how much memory it takes, before training");
  command->add_option("CONFIG", options->config, "config file")->required();
  command->add_option("--set", options->overrides, "override one key: --set optimizer.sparsity=0.99 (repeatable)")
      ->take_all()
      ->expected(1);
  command->add_option("--workers", options->workers, "workers for the break-even (default: the config's)")
      ->check(CLI::PositiveNumber);
  command->footer(
      "Example:\n  dgc plan configs/paper/resnet50_imagenet.json\n\n"
      "Formats: paper48 = 32-bit value + 16-bit run length, as the DGC paper counts; fp32+block16 and fp16+block16 "
      "are\n"
      "what messages really use (exchange.wire.values); the others are for comparison. Headers are not counted.");
  command->callback([options] {
    const Config config = load_config(options->config, options->overrides);
    const int64_t workers = options->workers > 0 ? options->workers : config.workers_per_rank * config.ranks;
    print_plan(make_plan(config), config, workers);
  });
}

}  // namespace dgc
