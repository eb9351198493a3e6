#include "tools/bench/bench.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/overrides.h"
#include "commands/short_spins.h"
#include "commands/standard_output.h"
#include "config/config.h"
#include "config/table.h"
#include "json/lines.h"
#include "run/conv_plans_file.h"
#include "tensor/counted.h"
#include "tools/bench/bench_models.h"

namespace dgc {
namespace {

struct BenchArguments {
  DgcBenchOptions dgc;
  BenchOptions train;
  std::string config;
  std::vector<std::string> overrides;
  double seconds = 10;
  std::string out;
  bool json = false;
};

void add_json(CLI::App* command, BenchArguments& options) {
  command->add_flag("--json", options.json, "print one line of JSON");
}

void add_config(CLI::App* command, BenchArguments& options) {
  command->add_option("CONFIG", options.config, "config file")->required();
  add_overrides(*command, options.overrides, "override one key (repeatable)");
}

void add_steps(CLI::App& command, int& option, const char* name, int64_t least, const char* what) {
  constexpr int64_t kMost = 100000;
  command.add_option(name, option, what)->check(whole_number(least, kMost))->capture_default_str();
}

void run_dgc(const BenchArguments& options) {
  const DgcBench b = bench_dgc(options.dgc);
  if (options.json) {
    Row row;
    row.set("bench", std::string("dgc")).set("device", b.device).set("parameters", b.parameters);
    row.set("ms_per_step", b.compress_ms).set("apply_ms", b.apply_ms).set("copy_ms", b.copy_ms);
    row.set("hits", b.hits);
    row.set("gb_per_s", b.gb_per_s()).set("copy_gb_per_s", b.copy_gb_per_s());
    print_json(to_json_line(row));
    return;
  }
  fmt::print("DGC step of one worker on {}, {} parameters, sparsity {} %\n", b.device, b.parameters,
             100 * options.dgc.sparsity);
  fmt::print("  compress  {:8.3f} ms  {:7.2f} GB/s, counting 20 B per parameter\n", b.compress_ms, b.gb_per_s());
  fmt::print("  copy      {:8.3f} ms  {:7.2f} GB/s, of as many bytes, in turn\n", b.copy_ms, b.copy_gb_per_s());
  fmt::print("  apply     {:8.3f} ms\n", b.apply_ms);
  fmt::print("compress runs at {:.2f} of the copy's bandwidth; {:.0f} % of the tensors needed no second pass\n",
             b.gb_per_s() / b.copy_gb_per_s(), 100 * b.hits);
}

void run_train(const BenchArguments& options) {
  const Config config = load_config(options.config, options.overrides);
  const TrainBench b = bench_train(config, options.train);
  if (b.device.empty()) return;  // another process prints
  if (options.json) {
    Row row;
    row.set("bench", std::string("train")).set("config", config.name).set("device", b.device);
    row.set("global_batch", b.global_batch);
    row.set("ms_per_step", b.ms_per_step).set("ms_unrecorded", b.ms_unrecorded);
    row.set("samples_per_s", b.samples_per_s());
    for (const Phases::Phase& phase : b.phases) row.set(phase.name + "_ms", phase.milliseconds);
    if (b.overlap.steps > 0) row.set("overlap_ms", b.overlap.ms_per_step());
    row.set("exchange_hidden", b.exchange_hidden());
    print_json(to_json_line(row));
    return;
  }
  fmt::print("{} on {}: {:.2f} ms per step of {} samples, {:.1f} samples/s\n", config.name, b.device, b.ms_per_step,
             b.global_batch, b.samples_per_s());
  fmt::print("phases of a step, one after another (not recorded, {:.2f} ms):", b.ms_unrecorded);
  for (const Phases::Phase& phase : b.phases) fmt::print("  {} {:.2f} ms", phase.name, phase.milliseconds);
  fmt::print("\n");
  if (b.overlap.steps == 0) {
    fmt::print("compression and exchange come after the backward pass (exchange.overlap)\n");
  } else {
    fmt::print("compression and exchange take {:.2f} ms per step, {:.0f} % of it beside the backward pass\n",
               b.overlap.ms_per_step(), 100 * b.exchange_hidden());
  }
}

void run_data(const BenchArguments& options) {
  const Config config = load_config(options.config, options.overrides);
  const DataBench b = bench_data(config, options.seconds);
  if (options.json) {
    Row row;
    row.set("bench", std::string("data")).set("config", config.name).set("samples", b.samples);
    row.set("threads", int64_t{b.threads}).set("seconds", b.seconds).set("cpu_seconds", b.cpu_seconds);
    row.set("samples_per_s", b.samples_per_s()).set("samples_per_s_per_thread", b.samples_per_s() / b.threads);
    row.set("samples_per_cpu_s", b.samples_per_cpu_s());
    print_json(to_json_line(row));
    return;
  }
  fmt::print("{}: {:.1f} {}/s by {}, {:.1f} by each\n", config.name, b.samples_per_s(), b.samples,
             counted(b.threads, "loader thread"), b.samples_per_s() / b.threads);
  fmt::print(
      "{:.1f} {} in a second of processor time; loader threads computed for {:.0f} % of the time, and otherwise "
      "waited for files or for a core\n",
      b.samples_per_cpu_s(), b.samples, 100 * b.busy());
}

void print_timed(const ConvTimings::Convolution& one) {
  if (one.plans.empty()) return;
  const ConvTimings::Plan& fastest = one.fastest();
  fmt::print("{:10.1f} us, {:5.2f}x as fast as the first of {:2} plans  {}\n", fastest.microseconds,
             one.plans[0].microseconds / fastest.microseconds, one.plans.size(), text_of(one.key));
  std::fflush(stdout);  // the next one may take seconds
}

void run_convolutions(const BenchArguments& options) {
  const Config config = load_config(options.config, options.overrides);
  const ConvTimings timings = options.json ? bench_convolutions(config) : bench_convolutions(config, print_timed);
  double all = 0, all_first = 0;
  for (const ConvTimings::Convolution& one : timings.convolutions) {
    if (one.plans.empty()) continue;
    const ConvTimings::Plan& fastest = one.fastest();
    all += fastest.microseconds;
    all_first += one.plans[0].microseconds;
    if (options.json) {
      Row row;
      row.set("bench", std::string("convolution")).set("convolution", text_of(one.key)).set("gpu", timings.gpu);
      row.set("cudnn", timings.cudnn).set("plans", std::ssize(one.plans)).set("plan", fastest.name);
      row.set("us", fastest.microseconds).set("first_us", one.plans[0].microseconds);
      print_json(to_json_line(row));
    }
  }
  if (!options.json) {
    fmt::print("{} with cuDNN {}: each once takes {:.1f} us, {:.2f}x as fast as the first plans\n", timings.gpu,
               timings.cudnn, all, all > 0 ? all_first / all : 1);
  }
  if (options.out.empty()) return;
  write_conv_plans(options.out, timings);
  if (!options.json) fmt::print("{}: written; train with --set conv_plans={}\n", options.out, options.out);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure this machine: the DGC step, training steps, data loading, or convolutions");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n  dgc bench dgc\n  dgc bench train bench/resnet20_batch128.json --json\n"
      "  dgc bench data configs/paper/resnet50_imagenet.json --set data.threads=1");

  CLI::App* dgc = command->add_subcommand("dgc", "The DGC step at a model's size, beside a copy of as many bytes");
  add_steps(*dgc, options->dgc.warmup, "--warmup", 0, "steps before counting");
  add_steps(*dgc, options->dgc.steps, "--steps", 1, "steps, of which the median is shown");
  add_json(dgc, *options);
  dgc->add_option("--device", options->dgc.device, "auto, cpu or cuda:N")->capture_default_str();
  dgc->add_option("--model", options->dgc.model,
                  "whose tensors: resnet50 (25.6 M), ptb_lstm (51 M), deep_speech (117 M), one_tensor (25 M)")
      ->check(one_of(names_of(bench_models())))
      ->capture_default_str();
  dgc->add_option("--threads", options->dgc.threads, "compute threads; 0: all cores")->check(whole_number(0, 1024));
  dgc->add_option("--sparsity", options->dgc.sparsity, "share that is not sent")->check(share())->capture_default_str();
  dgc->add_option("--workers", options->dgc.workers, "whose messages are applied")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  dgc->add_option("--weight-decay", options->dgc.weight_decay, "above 0, applying moves all weights")
      ->check(share())
      ->capture_default_str();
  dgc->footer(
      "Examples:\n  dgc bench dgc --device cuda:0 --model deep_speech\n"
      "  dgc bench dgc --device cuda:0 --workers 64 --weight-decay 1e-4");
  dgc->callback([options] {
    restart_with_short_spins();
    run_dgc(*options);
  });

  CLI::App* train = command->add_subcommand("train", "Training steps of a config, data included");
  add_config(train, *options);
  add_steps(*train, options->train.warmup, "--warmup", 0, "steps before counting");
  add_steps(*train, options->train.steps, "--steps", 1, "steps in one stretch");
  add_steps(*train, options->train.repeats, "--repeats", 1, "stretches; the median is shown");
  add_json(train, *options);
  train->footer("Example:\n  dgc bench train bench/resnet20_batch128.json --set threads=2");
  train->callback([options] {
    restart_with_short_spins();
    run_train(*options);
  });

  CLI::App* data = command->add_subcommand("data", "How quickly loader threads make a config's training batches");
  add_config(data, *options);
  data->add_option("--seconds", options->seconds, "at least so long, and until a batch is ready")
      ->check(number(0.001, 86400))
      ->capture_default_str();
  add_json(data, *options);
  data->footer("Example:\n  dgc bench data bench/resnet20_batch128.json --set data.threads=2");
  data->callback([options] { run_data(*options); });

  CLI::App* convolutions = command->add_subcommand(
      "convolutions", "All of cuDNN's plans for each convolution of a training step, on an idle GPU");
  add_config(convolutions, *options);
  convolutions->add_option("--out", options->out, "write the fastest plans to this file, for the key conv_plans")
      ->check(output_file());
  add_json(convolutions, *options);
  convolutions->footer(
      "Plans that give other bits each time, or round more than the config's precision, are left out.\n\n"
      "Example:\n  dgc bench convolutions configs/paper/resnet50_imagenet.json --out h200_plans.json");
  convolutions->callback([options] { run_convolutions(*options); });
}

}  // namespace dgc
