#include "train/rank.h"

#include <algorithm>
#include <thread>

#include "tensor/errors.h"

namespace dgc {
namespace {

// Shared fairly: the ranks of a run are threads of one process on one machine.
int compute_threads(const Config& config) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / static_cast<int>(config.ranks));
}

Shape image_shape(const ImageDataset& dataset) {
  const ImageShape shape = dataset.shape();
  return {shape.height, shape.width, shape.channels};
}

int64_t all_workers(const Config& config) { return config.ranks * config.workers_per_rank; }

}  // namespace

void check_fits(const Config& config, const ImageDataset& train) {
  const Network network = make_network(config.model, image_shape(train));
  const int64_t classes = network.shape(network.output())[1];
  if (classes < train.classes()) {
    throw_user_error("the model has {} classes but the data has {}; set model.classes", classes, train.classes());
  }
  // Throws when there are too few images.
  Sampling{train.size(), all_workers(config), config.training.batch_per_worker, config.seed}.steps_per_epoch();
}

Rank::Rank(const Config& config, const Data& data, Communicator& communicator)
    : config_(config),
      data_(data),
      communicator_(communicator),
      backend_(make_backend(config.device, compute_threads(config))),
      device_(backend_->device()),
      network_(make_network(config.model, image_shape(data.train))),
      params_(network_.params()),
      statistics_(network_.buffers()),
      weights_(device_, params_),
      mean_statistics_(device_, statistics_),
      executor_(network_, *backend_, config.training.batch_per_worker, Executor::Mode::training),
      evaluator_(network_, *backend_, data.test, config.training.eval_batch, static_cast<int>(config.data.threads)),
      lr_(make_lr_schedule(config)),
      sparsity_(make_sparsity_schedule(config.optimizer)) {
  check_fits(config, data.train);
  initialize(weights_, config.seed);
  initialize(mean_statistics_, config.seed);
  for (int64_t i = 0; i < config.workers_per_rank; ++i) {
    workers_.push_back({Arena(device_, params_), Arena(device_, statistics_), Arena(device_, statistics_)});
    initialize(workers_.back().statistics, config.seed);
  }
  optimizer_ = make_optimizer(config, {.backend = *backend_,
                                       .communicator = communicator_,
                                       .layout = params_,
                                       .local_workers = static_cast<int>(workers_.size())});

  activations_ = Buffer(device_, std::max(executor_.activation_bytes(), evaluator_.activation_bytes()));
  executor_.attach(activations_.data());
  evaluator_.attach(activations_.data());
  const int64_t batch = config.training.batch_per_worker;
  images_ = Buffer(device_, static_cast<size_t>(network_.shape(0, batch).numel()) * sizeof(float));
  labels_ = Buffer(device_, static_cast<size_t>(batch) * sizeof(int32_t));
  loss_stats_ = Buffer(device_, 3 * sizeof(float));
  steps_per_epoch_ = Sampling{data.train.size(), workers(), batch, config.seed}.steps_per_epoch();
}

StepMetrics Rank::train_step() {
  if (!loader_) {
    loader_ = std::make_unique<Loader>(
        data_.train,
        LoaderOptions{.sampling = {data_.train.size(), workers(), config_.training.batch_per_worker, config_.seed},
                      .first_worker = first_worker(),
                      .local_workers = static_cast<int>(workers_.size()),
                      .start_step = step_,
                      .prefetch = {.threads = static_cast<int>(config_.data.threads),
                                   .ahead = 2 * static_cast<int>(workers_.size())}});
  }
  StepMetrics metrics;
  metrics.learning_rate = learning_rate_at(lr_, epoch(), plateau_);
  if (config_.optimizer.type == OptimizerType::dgc) metrics.sparsity = sparsity_at(sparsity_, epoch());

  std::vector<double> losses;
  std::vector<float*> gradients;
  for (Worker& worker : workers_) {
    losses.push_back(run_worker(worker, loader_->next()));
    gradients.push_back(worker.gradient.data());
  }
  const StepReport report = optimizer_->step({.gradients = gradients,
                                              .weights = weights_,
                                              .lr = static_cast<float>(metrics.learning_rate),
                                              .sparsity = metrics.sparsity,
                                              .step = static_cast<uint64_t>(step_)});
  if (!report.skipped) {
    for (Worker& worker : workers_) std::swap(worker.statistics, worker.next_statistics);
  }
  ++step_;
  metrics.step = step_;
  metrics.epoch = epoch();
  metrics.loss = average_over_workers(losses);
  metrics.sent_bytes = report.sent_bytes;
  metrics.dense_bytes = report.dense_bytes;
  metrics.grad_norm = report.grad_norm;
  metrics.skipped = report.skipped;
  return metrics;
}

double Rank::run_worker(Worker& worker, const Batch& batch) {
  const int64_t rows = executor_.batch();
  const View images{images_.data(), network_.shape(0, rows)};
  const View labels{labels_.data(), {rows}, DType::i32};
  device_->copy_in(images.data, batch.images.data(), batch.images.size() * sizeof(float));
  device_->copy_in(labels.data, batch.labels.data(), batch.labels.size() * sizeof(int32_t));
  device_->zero(worker.gradient.data(), worker.gradient.bytes());
  const Arena& statistics = worker.next_statistics;
  device_->zero(statistics.data(), statistics.bytes());
  backend_->add({worker.statistics.data(), {statistics.extent()}}, {statistics.data(), {statistics.extent()}});

  const auto global_batch = static_cast<uint64_t>(rows * workers());
  const RunContext run{.training = true,
                       .seed = config_.seed,
                       .first_sample = static_cast<uint64_t>(batch.step) * global_batch +
                                       static_cast<uint64_t>(batch.worker) * static_cast<uint64_t>(rows)};
  const View logits = executor_.forward(weights_, statistics, images, run);
  const View stats{loss_stats_.data(), {3}};
  backend_->softmax_cross_entropy({rows, logits.shape[1], 1.f / static_cast<float>(rows)}, logits, labels,
                                  executor_.output_gradient(), stats);
  executor_.backward(weights_, worker.gradient, images, run, [](int, int) {});

  float sums[3];
  device_->copy_out(sums, stats.data, sizeof(sums));
  return static_cast<double>(sums[0]) / static_cast<double>(rows);
}

double Rank::average_over_workers(const std::vector<double>& local) {
  std::vector<double> all(static_cast<size_t>(workers()));
  communicator_.all_gather(std::as_bytes(std::span(local)), std::as_writable_bytes(std::span(all)));
  double sum = 0;
  for (const double value : all) sum += value;
  return sum / static_cast<double>(all.size());
}

void Rank::average_statistics() {
  std::vector<const float*> local;
  for (const Worker& worker : workers_) local.push_back(worker.statistics.data());
  const auto n = static_cast<size_t>(statistics_.extent());
  if (n == 0) return;
  std::vector<float> sum(n);
  communicator_.all_reduce_ordered(local, sum.data(), n);
  for (float& value : sum) value /= static_cast<float>(workers());
  device_->copy_in(mean_statistics_.data(), sum.data(), n * sizeof(float));
}

EvalMetrics Rank::evaluate() {
  average_statistics();
  EvalSums sums;
  if (communicator_.rank() == 0) sums = evaluator_.run(weights_, mean_statistics_);
  std::vector<EvalSums> all(static_cast<size_t>(communicator_.size()));
  communicator_.all_gather(std::as_bytes(std::span(&sums, 1)), std::as_writable_bytes(std::span(all)));
  const auto samples = static_cast<double>(data_.test.size());
  return {.step = step_,
          .epoch = epoch(),
          .test_loss = all[0].loss / samples,
          .test_accuracy = all[0].top1 / samples,
          .test_top5 = all[0].top5 / samples};
}

void Rank::adapt_learning_rate(const EvalMetrics& eval) { plateau_ = plateau_after(lr_, plateau_, eval.test_loss); }

void Rank::flush() {
  // The last step's rate: where a schedule ends at zero, the next one would drop what is sent.
  const double last = static_cast<double>(std::max<int64_t>(step_ - 1, 0)) / static_cast<double>(steps_per_epoch_);
  optimizer_->flush({.gradients = {},
                     .weights = weights_,
                     .lr = static_cast<float>(learning_rate_at(lr_, last, plateau_)),
                     .step = static_cast<uint64_t>(step_)});
  flushed_ = true;
}

}  // namespace dgc
