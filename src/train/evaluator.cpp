#include "train/evaluator.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "layers/ctc_loss.h"

namespace dgc {
namespace {

std::vector<int64_t> evaluation_rows(const Dataset& dataset, int64_t rows) {
  if (dataset.most_labels() > 0) return padded_lengths(dataset.rows());
  const int64_t full = std::min(rows, dataset.rows());
  return {full, dataset.rows() % full};
}

}  // namespace

void set_speech(EvalMetrics& metrics, const EvalSums& sums) {
  metrics.test_loss = sums.loss / sums.top1;
  metrics.errors = {sums.words.rate(), sums.characters.rate(), static_cast<int64_t>(sums.top5)};
}

Evaluator::Evaluator(const Network& network, Backend& backend, const Dataset& dataset, int64_t batch,
                     int loader_threads, DType activations)
    : backend_(backend),
      dataset_(dataset),
      loader_threads_(loader_threads),
      batch_(batch),
      executors_(network, backend, evaluation_rows(dataset, batch), Executor::Mode::evaluation, activations),
      state_layout_(network.state()),
      state_(backend.device(), state_layout_),
      speech_(dynamic_cast<const Speech*>(&dataset)) {
  const BatchInput::Sizes sizes{executors_.most_rows(), dataset.most_labels()};
  input_ = std::make_unique<BatchInput>(backend, network, sizes, activations);
  stats_ = Buffer(backend.device(), 3 * sizeof(double));
  if (speech_ == nullptr) return;
  frames_per_step_ = dynamic_cast<const CtcLoss&>(network.loss()).frames_per_step();
  decode({}, {});
}

size_t Evaluator::activation_bytes() const { return executors_.activation_bytes(); }

void Evaluator::attach(void* memory) { executors_.attach(memory); }

void Evaluator::decode(const DecodingOptions& options, SpeechScorer::Told told) {
  DGC_CHECK(speech_ != nullptr, "there is nothing to hear in this data");
  scorer_.emplace(*speech_, frames_per_step_, options, std::move(told));
}

EvalSums Evaluator::run(const Arena& weights, const Arena& statistics,
                        const std::function<void(ConstView)>& on_output) {
  EvalSums sums;
  Device& device = *backend_.device();
  device.zero(state_.data(), state_.bytes());
  if (scorer_) scorer_->start();
  const auto batches = dataset_.evaluation_batches(batch_, {.threads = loader_threads_, .ahead = 2});
  while (const Batch* batch = batches->next()) {
    input_->stage(*batch);
    input_->arrive();
    Executor& executor = executors_.for_rows(input_->rows());
    const ConstView x = input_->x(executor.batch()), lengths = input_->lengths();
    const View output =
        executor.forward(weights, statistics, x, {.training = false, .state = &state_, .lengths = lengths});
    executor.loss(weights,
                  {.labels = input_->labels(), .stats = static_cast<double*>(stats_.data()), .lengths = lengths});
    double batch_sums[3];
    device.copy_out(batch_sums, stats_.data(), sizeof(batch_sums));
    sums.loss += batch_sums[0];
    sums.top1 += batch_sums[1];
    sums.top5 += batch_sums[2];
    if (on_output) on_output(output);
    if (scorer_) scorer_->add(backend_, *batch, output);
    for (const std::string& bad : batch->bad_examples) spdlog::warn("left out of the evaluation: {}", bad);
  }
  if (scorer_) {
    sums.words = scorer_->words();
    sums.characters = scorer_->characters();
  }
  return sums;
}

}  // namespace dgc
