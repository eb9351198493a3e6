#include "tasks/make.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "config/data_types.h"
#include "data/held_back.h"
#include "data/images/chosen_images.h"
#include "optim/dgc/choose_overlap.h"
#include "optim/grouped.h"
#include "tensor/counted.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

void require_whole_groups(const Config& config, int64_t workers) {
  const int64_t size = config.exchange.workers_per_group;
  if (workers % size == 0) return;
  throw_user_error("exchange.workers_per_group: {} cannot be divided into groups of {}", counted(workers, "worker"),
                   size);
}

// Makes the optimizer of the workers or, where they form groups, of the groups.
std::unique_ptr<Optimizer> make_compressing(const Config& config, const OptimizerContext& context) {
  const ExchangeOptions& o = config.exchange;
  DgcOptions dgc = make_dgc_options(config);
  if (o.overlap == Overlap::automatic && o.every_steps == 1 && config.workers_at_once <= 1) {
    const OverlapChoice choice = choose_overlap(dgc, o.bucket_mb, context, o.workers_per_group);
    dgc.bucket_bytes = choice.bucket_bytes;
    if (context.communicator.rank() == 0 && !choice.text.empty()) spdlog::info(choice.text);
  }
  const auto make = [&](const OptimizerContext& workers) { return make_dgc(workers, dgc); };
  if (o.workers_per_group == 1) return make(context);
  return make_grouped(context, static_cast<int>(o.workers_per_group), make);
}

}  // namespace

std::unique_ptr<ImageDataset> make_images(const Config& config, Split split) {
  const DataOptions& data = config.data;
  ImageOptions options = data.images;
  options.synthetic.seed = config.seed;
  options.holds_back = data.validation_split > 0;
  auto dataset = data_type(data).open(data.path, options, split);
  const std::optional<int64_t> limit = split == Split::train ? data.train_limit : data.test_limit;
  if (!limit || *limit >= dataset->size()) return dataset;
  // A folder's images lie class by class, so that the first ones would be of few classes.
  const int64_t among = data_type(data).any_size ? dataset->size() : *limit;
  std::vector<int32_t> chosen;
  for (int64_t i = 0; i < *limit; ++i) chosen.push_back(static_cast<int32_t>(i * among / *limit));
  return std::make_unique<ChosenImages>(std::move(dataset), std::move(chosen));
}

ValidatedImages make_validated_images(const Config& config) {
  const std::shared_ptr<const ImageDataset> all = make_images(config, Split::train);
  HeldBack parts = hold_back(all->size(), config.data.validation_split, config.seed);
  return {std::make_unique<ChosenImages>(all, std::move(parts.trained)),
          std::make_unique<ChosenImages>(all, std::move(parts.held))};
}

DType activation_type(const Config& config, const Backend& backend) {
  switch (config.precision) {
    case Precision::fp32:
    case Precision::tf32:
      return DType::f32;
    case Precision::bf16:  // a plan's backend supports every type, so the device counts too
      return config.device == "cpu" || !backend.supports(DType::bf16) ? DType::f32 : DType::bf16;
    case Precision::fp16:
      return DType::f16;
  }
  throw InternalError("a precision that activation_type does not know");
}

DgcOptions make_dgc_options(const Config& config) {
  const ExchangeOptions& o = config.exchange;
  DgcOptions dgc = config.optimizer.dgc;
  if (o.every_steps > 1) dgc.sgd = {.momentum = o.outer.momentum, .nesterov = o.outer.nesterov};
  if (o.wait) {
    dgc.transport = Transport::sparse;
    dgc.carried = config.ranks > 1;
  }
  if (o.overlap == Overlap::on) dgc.bucket_bytes = bucket_bytes(o.bucket_mb);
  return dgc;
}

std::unique_ptr<Optimizer> make_optimizer(const Config& config, const OptimizerContext& context) {
  switch (config.optimizer.type) {
    case OptimizerType::sgd:
      return make_sgd(context, make_dgc_options(config).sgd, config.exchange.dense_values);
    case OptimizerType::dgc:
      return make_compressing(config, context);
  }
  throw InternalError("an optimizer that make_optimizer does not know");
}

int64_t compressing_workers(const Config& config, int64_t workers) {
  require_whole_groups(config, workers);
  return workers / config.exchange.workers_per_group;
}

void check_groups(const Config& config, int64_t workers) {
  const int64_t size = config.exchange.workers_per_group, local = config.workers_per_rank;
  require_whole_groups(config, workers);
  if (size % local == 0 || local % size == 0) return;
  throw_user_error(
      "exchange.workers_per_group: groups of {} and ranks of {} workers overlap; one of the two numbers must divide "
      "the other",
      size, local);
}

LrSchedule make_lr_schedule(const Config& config) {
  LrSchedule schedule = config.learning_rate;
  schedule.epochs = static_cast<double>(config.training.epochs);
  return schedule;
}

}  // namespace dgc
