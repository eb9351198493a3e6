#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "config/table.h"
#include "optim/dgc/layout.h"
#include "optim/step_record.h"
#include "tensor/cores.h"
#include "tensor/rng.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_models.h"
#include "tools/median.h"

namespace dgc {
namespace {

constexpr int kGradients = 4;  // different gradients in turn, so that selections differ from step to step

// Calls body(begin, end) in each thread for its share of 0 ... n-1.
void share_out(size_t n, int threads, const std::function<void(size_t, size_t)>& body) {
  std::vector<std::jthread> running;
  const size_t share = n / static_cast<size_t>(threads);
  for (int t = 0; t < threads; ++t) {
    const size_t begin = share * static_cast<size_t>(t);
    running.emplace_back([=, &body] { body(begin, t + 1 == threads ? n : begin + share); });
  }
}

void fill_normal(const Arena& arena, uint64_t stream, int threads) {
  const Philox rng(1, stream);
  std::vector<float> host(static_cast<size_t>(arena.extent()));
  share_out(host.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) host[i] = 1e-3f * rng.normal(i);
  });
  arena.device().copy_in(arena.data(), host.data(), arena.bytes());
}

// Two stretches of memory and the fastest copy between them: on the CPU every thread copies its share.
class Copy {
 public:
  Copy(const std::shared_ptr<Device>& device, size_t bytes, int threads)
      : from_(device, bytes), to_(device, bytes), threads_(threads) {}

  void run() const {
    if (from_.device().queues()) {
      from_.device().copy(to_.data(), from_.data(), from_.bytes());
      return;
    }
    share_out(from_.bytes(), threads_, [this](size_t begin, size_t end) {
      std::memcpy(static_cast<std::byte*>(to_.data()) + begin, static_cast<const std::byte*>(from_.data()) + begin,
                  end - begin);
    });
  }

 private:
  Buffer from_, to_;
  int threads_;
};

// Times of one operation, which are read when everything is queued: waiting for a GPU after each would put the latency
// of a launch into the next.
class Samples {
 public:
  explicit Samples(Device& device) : device_(device) {}

  template <typename Operation>
  void take(const Operation& operation) {
    stopwatches_.push_back(device_.make_stopwatch());
    stopwatches_.back()->start();
    operation();
    stopwatches_.back()->stop();
  }
  double median_after(int warmup) const {
    std::vector<double> milliseconds;
    for (size_t i = static_cast<size_t>(warmup); i < stopwatches_.size(); ++i) {
      milliseconds.push_back(stopwatches_[i]->milliseconds());
    }
    return median(milliseconds);
  }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Stopwatch>> stopwatches_;
};

double share_of_hits(const Buffer& guesses) {
  std::vector<DgcGuess> host(guesses.bytes() / sizeof(DgcGuess));
  guesses.device().copy_out(host.data(), guesses.data(), guesses.bytes());
  return static_cast<double>(std::ranges::count_if(host, &DgcGuess::hit)) / static_cast<double>(host.size());
}

}  // namespace

DgcBench bench_dgc(const DgcBenchOptions& options) {
  const ParamLayout params = row_named(bench_models(), options.model).params();
  const auto backend = make_backend(options.device, options.threads);
  const auto& device = backend->device();
  const int threads = options.threads > 0 ? options.threads : usable_cores();
  std::vector<Arena> gradients;
  for (int i = 0; i < kGradients; ++i) {
    gradients.emplace_back(device, params);
    fill_normal(gradients.back(), static_cast<uint64_t>(i), threads);
  }
  const Arena u(device, params), v(device, params), weights(device, params), sum(device, params);
  const DgcLayout layout = make_dgc_layout(params, {}, options.sparsity);
  const DgcTables tables(device, layout);
  const size_t message_bytes = layout.wire.message_bytes();
  const Buffer messages(device, message_bytes * static_cast<size_t>(options.workers));
  const std::vector<DgcGuess> no_guesses(layout.segments.size());
  const Buffer guesses(device, no_guesses.size() * sizeof(DgcGuess));
  device->copy_in(guesses.data(), no_guesses.data(), guesses.bytes());
  const auto communicator = make_single_communicator();
  StepRecord record(*backend, *communicator, 1);

  DgcCompressArgs compress;
  compress.table = tables.table();
  compress.guesses = static_cast<DgcGuess*>(guesses.data());
  compress.u = u.data();
  compress.v = v.data();
  compress.control = record.control();
  compress.momentum = 0.9f;
  DgcApplyArgs apply;
  apply.table = tables.table();
  apply.messages = static_cast<const std::byte*>(messages.data());
  apply.workers = options.workers;
  apply.header = layout.header(0);
  apply.control = record.control();
  apply.sum = sum.data();
  apply.w = weights.data();
  apply.weight_decay = static_cast<float>(options.weight_decay);
  std::optional<Arena> decay_momentum;
  if (options.weight_decay > 0) {
    apply.m = decay_momentum.emplace(device, params).data();
    apply.momentum = compress.momentum;
  }
  const auto compress_as = [&](int worker) {
    compress.header = layout.header(static_cast<uint32_t>(worker));
    compress.message = static_cast<std::byte*>(messages.data()) + message_bytes * static_cast<size_t>(worker);
    backend->dgc_compress(compress);
  };

  const Copy copy(device, static_cast<size_t>(params.parameters()) * 10, threads);  // 20 bytes per parameter
  Samples compress_times(*device), apply_times(*device), copy_times(*device);
  for (int step = 0; step < options.warmup + options.steps; ++step) {
    record.begin({.step = static_cast<uint64_t>(step), .lr = 0.1f});
    compress.g = gradients[static_cast<size_t>(step % kGradients)].data();
    for (int worker = 1; worker < options.workers; ++worker) compress_as(worker);  // of the same u and v
    compress_times.take([&] { compress_as(0); });
    apply_times.take([&] { backend->dgc_apply(apply); });
    copy_times.take([&] { copy.run(); });
  }
  record.finish();
  record.take();  // throws when a message could not be used
  return {.device = backend->device()->name(),
          .parameters = params.parameters(),
          .compress_ms = compress_times.median_after(options.warmup),
          .apply_ms = apply_times.median_after(options.warmup),
          .copy_ms = copy_times.median_after(options.warmup),
          .hits = share_of_hits(guesses)};
}

}  // namespace dgc
