#include "data/images/image_dataset.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "tensor/errors.h"

namespace dgc {
namespace {

class ImageBatches final : public BatchSource {
 public:
  ImageBatches(const ImageDataset& images, BatchPlans plans) : images_(images), plans_(std::move(plans)) {}

  int64_t count() const override { return plans_.count; }

  void fill(int64_t number, int, Batch& batch, const std::stop_token& stop) override {
    const BatchPlan plan = plans_.plan(number);
    const size_t count = plan.samples.size(), numel = static_cast<size_t>(images_.shape().numel());
    batch.step = plan.step;
    batch.worker = plan.worker;
    batch.labels.resize(count);
    batch.values.resize(count * numel);
    for (size_t i = 0; i < count && !stop.stop_requested(); ++i) {
      const int32_t sample = plan.samples[i];
      std::optional<Draw> draw;
      if (plan.augment_seed) draw.emplace(*plan.augment_seed, plan.epoch, sample);
      batch.labels[i] = images_.read(sample, draw ? &*draw : nullptr, batch.values.data() + i * numel);
    }
  }

 private:
  const ImageDataset& images_;
  BatchPlans plans_;
};

}  // namespace

std::vector<Trait> ImageDataset::traits() const {
  const ImageShape s = shape();
  return {{"image shape", fmt::format("{}x{}x{}", s.height, s.width, s.channels)},
          {"number of classes", fmt::format("{}", classes())}};
}

// The checksum covers a few images from all over the set.
std::vector<Trait> ImageDataset::fingerprint() const {
  constexpr int64_t kImages = 16;
  std::vector<float> image(static_cast<size_t>(shape().numel()));
  uint64_t sum = 0;
  const int64_t images = std::min(kImages, size());
  for (int64_t i = 0; i < images; ++i) {
    const int32_t label = read(i * size() / images, nullptr, image.data());
    sum = XXH64(image.data(), image.size() * sizeof(float), sum + static_cast<uint64_t>(label));
  }
  return {{"its number of images", fmt::format("{}", size())},
          {"a checksum of some images", fmt::format("{:016x}", sum)}};
}

std::unique_ptr<Batches> ImageDataset::training_batches(const WorkerBatches& workers,
                                                        const PrefetchOptions& options) const {
  DGC_CHECK(workers.sampling.samples <= size(), "samples in the dataset");
  auto plans = training_plans(workers, std::make_shared<const Sampler>(workers.sampling));
  return std::make_unique<Batches>(std::make_unique<ImageBatches>(*this, std::move(plans)), options);
}

std::unique_ptr<Batches> ImageDataset::evaluation_batches(const EvaluationBatches& batches,
                                                          const PrefetchOptions& options) const {
  return std::make_unique<Batches>(std::make_unique<ImageBatches>(*this, evaluation_plans(size(), batches)), options);
}

}  // namespace dgc
