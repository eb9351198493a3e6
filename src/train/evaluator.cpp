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

Evaluator::Evaluator(Network network, Backend& backend, Scored scored, int64_t batch, int loader_threads,
                     DType activations)
    : backend_(backend),
      scored_(std::move(scored)),
      loader_threads_(loader_threads),
      batch_(batch),
      memory_(std::move(network), backend, evaluation_rows(scored_.data, batch), scored_.data.most_labels(),
              activations) {}

Measures Evaluator::run(const Arena& weights, const Arena& statistics, const OnOutput& on_output) {
  const std::vector<Share> whole = {count(weights, statistics, 0, 1, on_output)};
  Measures measured = measures(whole);
  tell_left_out(whole);
  return measured;
}

int Evaluator::most_shares(int wanted) const { return memory_.state_layout.extent() > 0 ? 1 : wanted; }

Evaluator::Share Evaluator::count(const Arena& weights, const Arena& statistics, int share, int shares,
                                  const OnOutput& on_output) {
  Device& device = *backend_.device();
  device.zero(memory_.state.data(), memory_.state.bytes());
  Share counted;
  const auto batches = scored_.data.evaluation_batches({.rows = batch_, .first = share, .every = shares},
                                                       {.threads = loader_threads_, .ahead = 2});
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
    counted.counts.push_back(scored_.scorer->count(backend_, *batch, output, stats));
    counted.left_out.insert(counted.left_out.end(), batch->bad_examples.begin(), batch->bad_examples.end());
  }
  return counted;
}

Measures Evaluator::measures(const std::vector<Share>& shares) const {
  Counts sums{};
  for (size_t batch = 0; batch / shares.size() < shares[batch % shares.size()].counts.size(); ++batch) {
    const Counts& more = shares[batch % shares.size()].counts[batch / shares.size()];
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  }
  std::vector<std::string> left_out;
  for (const Share& share : shares) left_out.insert(left_out.end(), share.left_out.begin(), share.left_out.end());
  return scored_.scorer->measures(sums, left_out);
}

void Evaluator::tell_left_out(const std::vector<Share>& shares) {
  for (const Share& share : shares) {
    for (const std::string& bad : share.left_out) spdlog::warn("left out of the evaluation: {}", bad);
  }
}

}  // namespace dgc
