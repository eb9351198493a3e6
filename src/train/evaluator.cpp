#include "train/evaluator.h"

#include <algorithm>

namespace dgc {

Evaluator::Evaluator(const Network& network, Backend& backend, const Dataset& dataset, int64_t rows, int loader_threads,
                     DType activations)
    : backend_(backend),
      dataset_(dataset),
      loader_threads_(loader_threads),
      state_layout_(network.state()),
      state_(backend.device(), state_layout_) {
  const int64_t full = std::min(rows, dataset.rows());
  for (const int64_t some : {full, dataset.rows() % full}) {
    if (some == 0) continue;
    executors_.push_back(std::make_unique<Executor>(network, backend, some, Executor::Mode::evaluation, activations));
  }
  input_ = std::make_unique<BatchInput>(backend, network, full, activations);
  stats_ = Buffer(backend.device(), 3 * sizeof(double));
}

size_t Evaluator::activation_bytes() const {
  size_t bytes = 0;
  for (const auto& executor : executors_) bytes = std::max(bytes, executor->activation_bytes());
  return bytes;
}

void Evaluator::attach(void* memory) {
  for (const auto& executor : executors_) executor->attach(memory);
}

EvalSums Evaluator::run(const Arena& weights, const Arena& statistics,
                        const std::function<void(ConstView)>& on_output) {
  EvalSums sums;
  Device& device = *backend_.device();
  device.zero(state_.data(), state_.bytes());
  const auto batches =
      dataset_.evaluation_batches(executors_.front()->batch(), {.threads = loader_threads_, .ahead = 2});
  while (const Batch* batch = batches->next()) {
    input_->stage(*batch);
    input_->arrive();
    const ConstView x = input_->x();
    Executor& executor = x.shape[0] == executors_.front()->batch() ? *executors_.front() : *executors_.back();
    const View output = executor.forward(weights, statistics, x, {.training = false, .state = &state_});
    executor.loss(weights, {.labels = input_->labels(), .stats = static_cast<double*>(stats_.data())});
    double batch_sums[3];
    device.copy_out(batch_sums, stats_.data(), sizeof(batch_sums));
    sums.loss += batch_sums[0];
    sums.top1 += batch_sums[1];
    sums.top5 += batch_sums[2];
    if (on_output) on_output(output);
  }
  return sums;
}

}  // namespace dgc
