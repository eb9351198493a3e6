#include "train/evaluator.h"

#include <spdlog/spdlog.h>

#include <algorithm>

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
      executors_(network, backend, evaluation_rows(scored_.data, batch), Executor::Mode::evaluation, activations),
      input_(backend, network, {executors_.most_rows(), scored_.data.most_labels()}, activations),
      state_layout_(network.state()),
      state_(backend.device(), state_layout_),
      stats_(backend.device(), sizeof(LossStats)) {}

size_t Evaluator::activation_bytes() const { return executors_.activation_bytes(); }

void Evaluator::attach(void* memory) { executors_.attach(memory); }

Measures Evaluator::run(const Arena& weights, const Arena& statistics,
                        const std::function<void(ConstView)>& on_output) {
  Device& device = *backend_.device();
  device.zero(state_.data(), state_.bytes());
  scored_.scorer->start();
  const auto batches = scored_.data.evaluation_batches(batch_, {.threads = loader_threads_, .ahead = 2});
  while (const Batch* batch = batches->next()) {
    input_.stage(*batch);
    input_.arrive();
    Executor& executor = executors_.for_rows(input_.rows());
    const ConstView x = input_.x(executor.batch()), lengths = input_.lengths();
    const View output =
        executor.forward(weights, statistics, x, {.training = false, .state = &state_, .lengths = lengths});
    executor.loss(weights,
                  {.labels = input_.labels(), .stats = static_cast<double*>(stats_.data()), .lengths = lengths});
    LossStats stats;
    device.copy_out(&stats, stats_.data(), sizeof(stats));
    if (on_output) on_output(output);
    scored_.scorer->add(backend_, *batch, output, stats);
    for (const std::string& bad : batch->bad_examples) spdlog::warn("left out of the evaluation: {}", bad);
  }
  return measures();
}

}  // namespace dgc
