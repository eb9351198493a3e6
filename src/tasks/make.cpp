#include "tasks/make.h"

#include <algorithm>

#include "config/enum_names.h"
#include "data/images/open_images.h"
#include "models/alexnet.h"
#include "models/executors.h"
#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "optim/grouped.h"
#include "tasks/make_layers.h"
#include "tasks/make_speech.h"
#include "tasks/overlap.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// The beginning of another data set.
class FirstSamples final : public ImageDataset {
 public:
  FirstSamples(std::unique_ptr<ImageDataset> all, int64_t size) : all_(std::move(all)), size_(size) {}
  int64_t size() const override { return size_; }
  ImageShape shape() const override { return all_->shape(); }
  int64_t classes() const override { return all_->classes(); }
  int32_t read(int64_t i, const Draw* draw, float* out) const override { return all_->read(i, draw, out); }
  std::vector<std::string> remarks() const override { return all_->remarks(); }

 private:
  std::unique_ptr<ImageDataset> all_;
  int64_t size_;
};

Network make_resnet(const ModelOptions& options, const Shape& image) {
  const bool cifar = options.stem == Stem::cifar;
  return make_resnet(
      ResNetOptions{.stem = cifar ? ResNetOptions::Stem::cifar : ResNetOptions::Stem::imagenet,
                    .shortcut = options.shortcut == Shortcut::projection ? ResNetOptions::Shortcut::projection
                                                                         : ResNetOptions::Shortcut::identity_pad,
                    .depth = options.depth,
                    .width = options.width,
                    .classes = options.classes},
      image);
}

Network make_language_model(const LstmModelOptions& o, int64_t streams) {
  if (o.vocabulary == 0) {
    throw_user_error("model.vocabulary: only training looks at the data; set it to the number of words");
  }
  return make_lstm_lm({.vocabulary = o.vocabulary,
                       .embedding = o.embedding,
                       .hidden = o.hidden,
                       .layers = o.layers,
                       .dropout = static_cast<float>(o.dropout),
                       .tied = o.tied,
                       .init = static_cast<float>(o.init)},
                      streams);
}

}  // namespace

std::unique_ptr<ImageDataset> make_images(const Config& config, Split split) {
  const DataOptions& data = config.data;
  ImageDatasetOptions options;
  options.type = kEnumNames<DataType>[static_cast<size_t>(data.type)];
  options.path = data.path;
  options.augment = {.pad_crop = static_cast<int>(data.augment.pad_crop),
                     .flip = data.augment.flip,
                     .min_scale = static_cast<float>(data.augment.min_scale),
                     .max_scale = static_cast<float>(data.augment.max_scale),
                     .min_ratio = static_cast<float>(data.augment.min_ratio),
                     .max_ratio = static_cast<float>(data.augment.max_ratio)};
  options.pad_to = data.pad_to;
  options.image_size = data.image_size;
  options.synthetic = {.train_samples = data.train_samples,
                       .test_samples = data.test_samples,
                       .height = data.height,
                       .width = data.width,
                       .channels = data.channels,
                       .classes = data.classes,
                       .noise = static_cast<float>(data.noise),
                       .seed = config.seed};
  auto dataset = open_images(options, split);
  const std::optional<int64_t> limit = split == Split::train ? data.train_limit : data.test_limit;
  if (!limit || *limit >= dataset->size()) return dataset;
  return std::make_unique<FirstSamples>(std::move(dataset), *limit);
}

Network make_network(const ModelOptions& options, const Shape& sample) {
  switch (options.type) {
    case ModelType::resnet:
      return make_resnet(options, sample);
    case ModelType::alexnet:
      return make_alexnet({options.classes, static_cast<float>(options.dropout)}, sample);
    case ModelType::layers:
      return make_layer_list(options.layers, sample);
    case ModelType::lstm_lm:
      return make_language_model(options.lstm, sample[0]);
    case ModelType::deep_speech:
      return make_speech_network(options.speech, sample);
  }
  DGC_CHECK(false, "a model type that make_network does not know");
}

namespace {
Shape padded(const Shape& image, int64_t side) {
  return {std::max(image[0], side), std::max(image[1], side), image[2]};
}
}  // namespace

SampleSpec sample_spec(const Config& config) {
  const DataOptions& data = config.data;
  switch (data.type) {
    case DataType::cifar10:
      return {padded({32, 32, 3}, data.pad_to), 10};
    case DataType::mnist:
    case DataType::fashion_mnist:
      return {padded({28, 28, 1}, data.pad_to), 10};
    case DataType::image_folder:
      return {{data.image_size, data.image_size, 3}, 0};
    case DataType::synthetic:
      return {{data.height, data.width, data.channels}, data.classes};
    case DataType::text:
      return {{config.training.batch_per_worker}, config.model.lstm.vocabulary};
    case DataType::an4:
    case DataType::librispeech:
    case DataType::speech_manifest:
      return {speech_sample(config, config.training.batch_per_worker), config.model.speech.classes};
  }
  DGC_CHECK(false, "a data type that sample_spec does not know");
}

void require_classes(const Config& config, int64_t classes, const Dataset& data) {
  if (classes >= data.classes()) return;
  if (is_text(config)) {
    throw_user_error("model.vocabulary: {}, but the data has {} words; set it to that, or to 0", classes,
                     data.classes());
  }
  throw_user_error("the model has {} classes but the data has {}; set model.classes", classes, data.classes());
}

int64_t rows_per_step(const Config& config) {
  return is_text(config) ? config.data.text.bptt : config.training.batch_per_worker;
}

std::vector<int64_t> batch_rows(const Config& config, const Dataset& train) {
  return is_speech(config) ? padded_lengths(train.rows()) : std::vector<int64_t>{rows_per_step(config)};
}

int64_t samples_per_step(const Config& config) {
  const int64_t rows = config.training.batch_per_worker * (is_text(config) ? config.data.text.bptt : 1);
  return config.ranks * config.workers_per_rank * rows;
}

DType activation_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return DType::f32;
    case Precision::bf16:
      return DType::bf16;
    case Precision::fp16:
      return DType::f16;
  }
  DGC_CHECK(false, "a precision that activation_type does not know");
}

std::unique_ptr<Optimizer> make_optimizer(const Config& config, const OptimizerContext& context) {
  const OptimizerOptions& o = config.optimizer;
  const SgdOptions sgd{.momentum = static_cast<float>(o.momentum),
                       .weight_decay = static_cast<float>(o.weight_decay),
                       .nesterov = o.nesterov,
                       .clip_norm = o.clip_norm,
                       .half = config.exchange.dense_values == DenseValues::fp16};
  if (o.type == OptimizerType::sgd) return make_sgd(context, sgd);
  const DgcOptions dgc{.sgd = sgd,
                       .momentum_correction = o.momentum_correction,
                       .factor_masking = o.factor_masking,
                       .wire = config.exchange.wire,
                       .transport = config.exchange.transport,
                       .algorithm = config.exchange.algorithm,
                       .small_tensors = config.exchange.small_tensors,
                       .small_sparsity = config.exchange.small_tensors_sparsity,
                       .bucket_bytes = choose_bucket_bytes(config, context)};
  const auto make = [&](const OptimizerContext& workers) { return make_dgc(workers, dgc); };
  if (config.exchange.workers_per_group == 1) return make(context);
  return make_grouped(context, static_cast<int>(config.exchange.workers_per_group), make);
}

int64_t compressing_workers(const Config& config, int64_t workers) {
  const int64_t size = config.exchange.workers_per_group;
  if (workers % size == 0) return workers / size;
  throw_user_error("exchange.workers_per_group: {} workers are no whole number of groups of {}", workers, size);
}

void check_groups(const Config& config) {
  const int64_t size = config.exchange.workers_per_group, local = config.workers_per_rank;
  compressing_workers(config, config.ranks * local);
  if (size % local == 0 || local % size == 0) return;
  throw_user_error(
      "exchange.workers_per_group: groups of {} and ranks of {} workers overlap; one of the two numbers must divide "
      "the other",
      size, local);
}

DgcLayoutOptions make_layout_options(const Config& config, double sparsity, int64_t workers) {
  const ExchangeOptions& o = config.exchange;
  return {
      sparsity,   o.wire, o.small_tensors, o.small_tensors_sparsity, o.transport, compressing_workers(config, workers),
      o.algorithm};
}

LrSchedule make_lr_schedule(const Config& config) {
  using Kind = LrSchedule::Kind;
  static_assert(static_cast<int>(ScheduleType::constant) == static_cast<int>(Kind::constant));
  static_assert(static_cast<int>(ScheduleType::step) == static_cast<int>(Kind::step));
  static_assert(static_cast<int>(ScheduleType::cosine) == static_cast<int>(Kind::cosine));
  static_assert(static_cast<int>(ScheduleType::polynomial) == static_cast<int>(Kind::polynomial));
  static_assert(static_cast<int>(ScheduleType::plateau) == static_cast<int>(Kind::plateau));
  static_assert(static_cast<int>(ScheduleType::exponential) == static_cast<int>(Kind::exponential));
  const LearningRateOptions& o = config.learning_rate;
  return {.kind = static_cast<Kind>(o.type),
          .base = o.base,
          .epochs = static_cast<double>(config.training.epochs),
          .milestones = o.milestones,
          .factor = o.factor,
          .power = o.power,
          .end = o.end,
          .patience = o.patience,
          .threshold = o.threshold,
          .warmup_epochs = o.warmup_epochs,
          .warmup_from = o.warmup_from};
}

SparsitySchedule make_sparsity_schedule(const OptimizerOptions& o) {
  return {.final = o.sparsity, .warmup_epochs = o.warmup.epochs, .warmup = o.warmup.sparsity};
}

}  // namespace dgc
