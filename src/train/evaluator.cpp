#include "train/evaluator.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

std::vector<int64_t> evaluation_rows(const Dataset& dataset, int64_t rows) {
  if (dataset.most_labels() > 0) return padded_lengths(dataset.rows());
  const int64_t full = std::min(rows, dataset.rows());
  return {full, dataset.rows() % full};
}

}  // namespace

Evaluator::Evaluator(const Network& network, Backend& backend, Scored scored, int64_t batch, int loader_threads,
                     DType activations)
    : backend_(backend),
      scored_(std::move(scored)),
      loader_threads_(loader_threads),
      batch_(batch),
      memory_(network, backend, evaluation_rows(scored_.data, batch), scored_.data.most_labels(), activations) {}

Measures Evaluator::run(const Arena& weights, const Arena& statistics, const OnOutput& on_output) {
  Device& device = *backend_.device();
  device.zero(memory_.state.data(), memory_.state.bytes());
  scored_.scorer->start();
  const auto batches = scored_.data.evaluation_batches(batch_, {.threads = loader_threads_, .ahead = 2});
  while (const Batch* batch = batches->next()) {
    if (interrupted()) throw Interrupted();
    memory_.input.stage(*batch);
    memory_.input.arrive();
    Executor& executor = memory_.executors.for_rows(memory_.input.rows());
    const ConstView x = memory_.input.x(executor.batch()), lengths = memory_.input.lengths();
    const View output =
        executor.forward(weights, statistics, x, {.training = false, .state = &memory_.state, .lengths = lengths});
    executor.loss(
        weights,
        {.labels = memory_.input.labels(), .stats = static_cast<double*>(memory_.stats.data()), .lengths = lengths});
    LossStats stats;
    device.copy_out(&stats, memory_.stats.data(), sizeof(stats));
    if (on_output) on_output(*batch, output);
    scored_.scorer->add(backend_, *batch, output, stats);
    for (const std::string& bad : batch->bad_examples) spdlog::warn("left out of the evaluation: {}", bad);
  }
  return measures();
}

}  // namespace dgc
