#include "tasks/make.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "config/data_types.h"
#include "optim/dgc/choose_overlap.h"
#include "optim/grouped.h"
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
  std::vector<std::string> class_names() const override { return all_->class_names(); }
  int32_t read(int64_t i, const Draw* draw, float* out) const override { return all_->read(i, draw, out); }
  std::vector<std::string> remarks() const override { return all_->remarks(); }

 private:
  std::unique_ptr<ImageDataset> all_;
  int64_t size_;
};

}  // namespace

std::unique_ptr<ImageDataset> make_images(const Config& config, Split split) {
  const DataOptions& data = config.data;
  ImageOptions options = data.images;
  options.synthetic.seed = config.seed;
  auto dataset = data_type(data).open(data.path, options, split);
  const std::optional<int64_t> limit = split == Split::train ? data.train_limit : data.test_limit;
  if (!limit || *limit >= dataset->size()) return dataset;
  return std::make_unique<FirstSamples>(std::move(dataset), *limit);
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

DgcOptions make_dgc_options(const Config& config) {
  const ExchangeOptions& o = config.exchange;
  DgcOptions dgc = config.optimizer.dgc;
  if (o.overlap == Overlap::on) dgc.bucket_bytes = bucket_bytes(o.bucket_mb);
  return dgc;
}

std::unique_ptr<Optimizer> make_optimizer(const Config& config, const OptimizerContext& context) {
  const ExchangeOptions& o = config.exchange;
  DgcOptions dgc = make_dgc_options(config);
  if (config.optimizer.type == OptimizerType::sgd) return make_sgd(context, dgc.sgd, o.dense_values);
  if (o.overlap == Overlap::automatic) {
    const OverlapChoice choice = choose_overlap(dgc, o.bucket_mb, context, o.workers_per_group);
    dgc.bucket_bytes = choice.bucket_bytes;
    if (context.communicator.rank() == 0 && !choice.text.empty()) spdlog::info(choice.text);
  }
  const auto make = [&](const OptimizerContext& workers) { return make_dgc(workers, dgc); };
  if (o.workers_per_group == 1) return make(context);
  return make_grouped(context, static_cast<int>(o.workers_per_group), make);
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

LrSchedule make_lr_schedule(const Config& config) {
  LrSchedule schedule = config.learning_rate;
  schedule.epochs = static_cast<double>(config.training.epochs);
  return schedule;
}

}  // namespace dgc
