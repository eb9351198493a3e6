#include "train/evaluator.h"

#include <algorithm>

#include "data/loader.h"

namespace dgc {

Evaluator::Evaluator(const Network& network, Backend& backend, const ImageDataset& dataset, int64_t batch,
                     int loader_threads, DType activations)
    : backend_(backend), dataset_(dataset), loader_threads_(loader_threads) {
  const int64_t full = std::min(batch, dataset.size());
  for (const int64_t rows : {full, dataset.size() % full}) {
    if (rows == 0) continue;
    executors_.push_back(std::make_unique<Executor>(network, backend, rows, Executor::Mode::evaluation, activations));
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
                        const std::function<void(ConstView)>& on_logits) {
  EvalSums sums;
  EvalLoader loader(dataset_, executors_.front()->batch(), {.threads = loader_threads_, .ahead = 2});
  while (const Batch* batch = loader.next()) {
    const auto rows = static_cast<int64_t>(batch->labels.size());
    Executor& executor = rows == executors_.front()->batch() ? *executors_.front() : *executors_.back();
    input_->stage(*batch);
    input_->arrive();
    const View logits = executor.forward(weights, statistics, input_->images(), {.training = false});
    backend_.softmax_cross_entropy({.rows = rows, .classes = logits.shape[1]}, logits, input_->labels(), {},
                                   static_cast<double*>(stats_.data()));
    double batch_sums[3];
    backend_.device()->copy_out(batch_sums, stats_.data(), sizeof(batch_sums));
    sums.loss += batch_sums[0];
    sums.top1 += batch_sums[1];
    sums.top5 += batch_sums[2];
    if (on_logits) on_logits(logits);
  }
  return sums;
}

}  // namespace dgc
