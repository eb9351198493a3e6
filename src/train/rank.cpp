#include "train/rank.h"

#include <algorithm>

#include "tensor/errors.h"
#include "train/interrupt.h"

namespace dgc {
namespace {

constexpr float kFirstLossScale = 65536;  // fp16; halved within some steps where it is too much
constexpr uint32_t kLossScaleEvery = 2000;

StepControl first_control(Precision precision) {
  StepControl control;
  if (precision == Precision::fp16) {
    control.loss_scale = kFirstLossScale;
    control.scale_every = kLossScaleEvery;
  }
  return control;
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

Rank::Rank(const Config& config, const Data& data, Backend& backend, Communicator& communicator)
    : config_(config),
      data_(data),
      communicator_(communicator),
      backend_(backend),
      device_(backend.device()),
      network_(make_network(config.model, image_shape(data.train))),
      params_(network_.params()),
      statistics_(network_.buffers()),
      weights_(device_, params_),
      mean_statistics_(device_, statistics_),
      executor_(network_, backend_, config.training.batch_per_worker, Executor::Mode::training,
                activation_type(config.precision)),
      evaluator_(network_, backend_, data.test, config.training.eval_batch, static_cast<int>(config.data.threads),
                 activation_type(config.precision)),
      record_(backend_, communicator, static_cast<int>(config.workers_per_rank)),
      statistics_sum_(backend_, communicator, static_cast<int>(config.workers_per_rank), statistics_.extent()),
      lr_(make_lr_schedule(config)),
      sparsity_(make_sparsity_schedule(config.optimizer)) {
  check_fits(config, data.train);
  initialize(weights_, config.seed);
  initialize(mean_statistics_, config.seed);
  const int64_t batch = config.training.batch_per_worker;
  for (int64_t i = 0; i < config.workers_per_rank; ++i) {
    workers_.push_back({Arena(device_, params_), Arena(device_, statistics_), Arena(device_, statistics_),
                        BatchInput(backend_, network_, batch, activation_type(config.precision))});
    initialize(workers_.back().statistics, config.seed);
  }
  record_.restore_control(first_control(config.precision));
  optimizer_ = make_optimizer(config, {.backend = backend_,
                                       .communicator = communicator_,
                                       .layout = params_,
                                       .local_workers = static_cast<int>(workers_.size())});

  activations_ = Buffer(device_, std::max(executor_.activation_bytes(), evaluator_.activation_bytes()));
  executor_.attach(activations_.data());
  evaluator_.attach(activations_.data());
  steps_per_epoch_ = Sampling{data.train.size(), workers(), batch, config.seed}.steps_per_epoch();
}

// The step, as one line of data: batches -> gradients -> what all workers know of them -> the exchange -> weights.
// What comes before and after is queued too, but differs from step to step, so it is not part of what is recorded.
void Rank::train_step() {
  if (!loader_) stage_batches();
  StepMetrics metrics;
  metrics.learning_rate = learning_rate_at(lr_, epoch(), plateau_);
  if (config_.optimizer.type == OptimizerType::dgc) metrics.sparsity = sparsity_at(sparsity_, epoch());
  const uint64_t key = optimizer_->prepare(metrics.sparsity);
  for (Worker& worker : workers_) worker.input.arrive();
  record_.begin({static_cast<uint64_t>(step_), static_cast<float>(metrics.learning_rate), interrupted()});

  if (communicator_.recordable() && backend_.observer == nullptr) {
    backend_.run_recorded(key, [this] { queue_step(); });
  } else {
    queue_step();
  }
  record_.finish();

  ++step_;
  ++position_;
  metrics.step = step_;
  metrics.epoch = epoch();
  const StepBytes bytes = optimizer_->bytes();
  metrics.transport = kTransportNames[static_cast<size_t>(bytes.transport)];
  metrics.sent_bytes = bytes.sent;
  metrics.dense_bytes = bytes.dense;
  untold_.push_back(metrics);
  lag_ = device_->queues() ? StepRecord::kQueued - 1 : 0;
  stage_batches();
}

void Rank::queue_step() {
  std::vector<float*> gradients;
  for (const Worker& worker : workers_) gradients.push_back(worker.gradient.data());
  const StepArgs step{.gradients = gradients, .weights = weights_, .record = record_};
  optimizer_->begin(step);
  for (int local = 0; local < static_cast<int>(workers_.size()); ++local) run_worker(local);
  {
    const Range range(backend_, "judge");
    record_.measure(gradients, params_.extent());
  }
  optimizer_->settle();
  {
    const Range range(backend_, "judge");
    record_.judge();
  }
  optimizer_->step(step);
  for (Worker& worker : workers_) {
    const Shape all{statistics_.extent()};
    backend_.copy_unless_skipped(record_.control(), {worker.next_statistics.data(), all},
                                 {worker.statistics.data(), all});
  }
}

void Rank::run_worker(int local) {
  Worker& worker = workers_[static_cast<size_t>(local)];
  const Range range(backend_, "worker");
  device_->zero(worker.gradient.data(), worker.gradient.bytes());
  const Arena& statistics = worker.next_statistics;
  device_->copy(statistics.data(), worker.statistics.data(), statistics.bytes());

  const int64_t rows = executor_.batch();
  const RunContext run{.training = true,
                       .seed = config_.seed,
                       .control = record_.control(),
                       .samples_per_step = static_cast<uint64_t>(rows * workers()),
                       .first_sample = static_cast<uint64_t>(first_worker() + local) * static_cast<uint64_t>(rows)};
  const View images = worker.input.images();
  const View logits = executor_.forward(weights_, statistics, images, run);
  backend_.softmax_cross_entropy({.rows = rows,
                                  .classes = logits.shape[1],
                                  .gradient_scale = 1.f / static_cast<float>(rows),
                                  .control = record_.control()},
                                 logits, worker.input.labels(), executor_.output_gradient(),
                                 &record_.local(local)->loss);
  executor_.backward(weights_, worker.gradient, images, run, [&](int first, int) { optimizer_->ready(local, first); });
}

// While the device computes, the next step's batches get on their way.
void Rank::stage_batches() {
  if (!loader_) {
    loader_ = std::make_unique<Loader>(
        data_.train,
        LoaderOptions{.sampling = {data_.train.size(), workers(), config_.training.batch_per_worker, config_.seed},
                      .first_worker = first_worker(),
                      .local_workers = static_cast<int>(workers_.size()),
                      .start_step = position_,
                      .prefetch = {.threads = static_cast<int>(config_.data.threads),
                                   .ahead = 2 * static_cast<int>(workers_.size())}});
  }
  for (Worker& worker : workers_) worker.input.stage(loader_->next());
}

std::optional<StepMetrics> Rank::next_metrics() {
  if (untold_.size() <= lag_) return std::nullopt;
  const StepResult result = record_.take();
  StepMetrics metrics = untold_.front();
  untold_.pop_front();
  metrics.loss = result.loss / static_cast<double>(executor_.batch() * workers());
  metrics.grad_norm = result.grad_norm;
  metrics.skipped = result.skipped;
  skipped_in_row_ = result.skipped ? skipped_in_row_ + 1 : 0;
  asked_to_stop_ = result.stop;
  return metrics;
}

void Rank::average_statistics() {
  if (statistics_.extent() == 0) return;
  std::vector<const float*> local;
  for (const Worker& worker : workers_) local.push_back(worker.statistics.data());
  std::vector<float> mean(static_cast<size_t>(statistics_.extent()));
  device_->copy_out(mean.data(), statistics_sum_.run(local), mean_statistics_.bytes());
  for (float& value : mean) value /= static_cast<float>(workers());
  device_->copy_in(mean_statistics_.data(), mean.data(), mean_statistics_.bytes());
}

EvalMetrics Rank::evaluate() {
  DGC_CHECK(untold_.empty(), "finish_steps() first");
  average_statistics();
  EvalSums sums;
  if (communicator_.rank() == 0) sums = evaluator_.run(weights_, mean_statistics_);
  std::vector<EvalSums> all(static_cast<size_t>(communicator_.size()));
  all_gather_host(communicator_, *device_, std::as_bytes(std::span(&sums, 1)), std::as_writable_bytes(std::span(all)));
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
  const double last = static_cast<double>(std::max<int64_t>(position_ - 1, 0)) / static_cast<double>(steps_per_epoch_);
  record_.begin({static_cast<uint64_t>(step_), static_cast<float>(learning_rate_at(lr_, last, plateau_)), false});
  optimizer_->flush({.gradients = {}, .weights = weights_, .record = record_});
  record_.finish();
  record_.take();
  flushed_ = true;
}

}  // namespace dgc
