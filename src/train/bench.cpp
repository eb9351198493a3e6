#include "train/bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "models/resnet.h"
#include "optim/dgc_layout.h"
#include "tensor/rng.h"
#include "train/rank.h"

namespace dgc {
namespace {

constexpr int kGradients = 4;  // different ones in turn, so that selections differ from step to step

double milliseconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Every thread copies its share.
void parallel_copy(std::byte* to, const std::byte* from, size_t bytes, int threads) {
  std::vector<std::jthread> running;
  const size_t share = bytes / static_cast<size_t>(threads);
  for (int t = 0; t < threads; ++t) {
    const size_t begin = share * static_cast<size_t>(t);
    running.emplace_back([=] { std::memcpy(to + begin, from + begin, t + 1 == threads ? bytes - begin : share); });
  }
}

void fill_normal(const Arena& arena, uint64_t stream) {
  const Philox rng(1, stream);
  for (int64_t i = 0; i < arena.extent(); ++i) arena.data()[i] = 1e-3f * rng.normal(static_cast<uint64_t>(i));
}

}  // namespace

DgcBench bench_dgc(const BenchOptions& options) {
  const ResNetOptions resnet50{.stem = ResNetOptions::Stem::imagenet,
                               .shortcut = ResNetOptions::Shortcut::projection,
                               .depth = 50,
                               .width = 64,
                               .classes = 1000};
  const ParamLayout params(make_resnet(resnet50, {224, 224, 3}).params());
  const auto backend = make_cpu_backend(options.threads);
  const auto& device = backend->device();
  std::vector<Arena> gradients;
  for (int i = 0; i < kGradients; ++i) {
    gradients.emplace_back(device, params);
    fill_normal(gradients.back(), static_cast<uint64_t>(i));
  }
  const Arena u(device, params), v(device, params), weights(device, params), momentum(device, params),
      sum(device, params);
  const DgcLayout layout = make_dgc_layout(params, options.sparsity, WireValues::fp32);
  const Buffer payload(device, layout.wire.payload_bytes());
  std::vector<DgcGuess> guesses(layout.segments.size());
  const std::array<const std::byte*, 1> payloads = {static_cast<const std::byte*>(payload.data())};

  DgcCompressArgs compress;
  compress.segments = layout.segments;
  compress.guesses = guesses;
  compress.u = u.data();
  compress.v = v.data();
  compress.momentum = 0.9f;
  compress.payload = static_cast<std::byte*>(payload.data());
  DgcApplyArgs apply;
  apply.segments = layout.segments;
  apply.payloads = payloads;
  apply.sum = sum.data();
  apply.m = momentum.data();
  apply.w = weights.data();
  apply.lr = 0.1f;

  const size_t copied = static_cast<size_t>(params.parameters()) * 10;  // read once and written once: 20 bytes
  const Buffer from(device, copied), to(device, copied);
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  std::vector<double> compress_ms, apply_ms, copy_ms;
  for (int step = 0; step < options.warmup + options.steps * options.repeats; ++step) {
    compress.g = gradients[static_cast<size_t>(step % kGradients)].data();
    compress_ms.push_back(milliseconds([&] { backend->dgc_compress(compress); }));
    apply_ms.push_back(milliseconds([&] { backend->dgc_apply(apply); }));
    copy_ms.push_back(milliseconds([&] {
      parallel_copy(static_cast<std::byte*>(to.data()), static_cast<const std::byte*>(from.data()), copied, threads);
    }));
    if (step + 1 != options.warmup) continue;
    for (auto* times : {&compress_ms, &apply_ms, &copy_ms}) times->clear();
  }
  return {params.parameters(), median(compress_ms), median(apply_ms), median(copy_ms)};
}

TrainBench bench_train(const Config& config, const BenchOptions& options) {
  const auto train_set = make_dataset(config, Split::train);
  const auto test_set = make_dataset(config, Split::test);
  const auto communicators = make_communicators(config);
  std::vector<double> stretches;
  run_ranks(communicators, [&](Communicator& communicator) {
    Rank rank(config, {*train_set, *test_set}, communicator);
    for (int i = 0; i < options.warmup; ++i) rank.train_step();
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      const double ms = milliseconds([&] {
        for (int i = 0; i < options.steps; ++i) rank.train_step();
      });
      if (communicator.rank() == 0) stretches.push_back(ms / options.steps);
    }
  });
  return {config.ranks * config.workers_per_rank * config.training.batch_per_worker, median(stretches)};
}

}  // namespace dgc
