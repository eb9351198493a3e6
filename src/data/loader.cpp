#include "data/loader.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "data/prefetcher.h"
#include "tensor/errors.h"

namespace dgc {

Loader::Loader(const ImageDataset& dataset, const LoaderOptions& o) : steps_per_epoch_(o.sampling.steps_per_epoch()) {
  DGC_CHECK(o.sampling.samples <= dataset.size(), "samples in the dataset");
  auto batches =
      training_batches(std::make_unique<Sampler>(o.sampling), {o.first_worker, o.local_workers, o.start_step});
  prefetcher_ = std::make_unique<Prefetcher>(dataset, std::move(batches), o.prefetch);
}

Loader::~Loader() = default;

const Batch* Loader::next() { return prefetcher_->next(); }

EvalLoader::EvalLoader(const ImageDataset& dataset, int64_t batch, const PrefetchOptions& options)
    : prefetcher_(std::make_unique<Prefetcher>(dataset, sequential_batches(dataset.size(), batch), options)) {}

EvalLoader::~EvalLoader() = default;

const Batch* EvalLoader::next() { return prefetcher_->next(); }

std::vector<Trait> ImageDataset::traits() const {
  const ImageShape s = shape();
  return {{"image shape", fmt::format("{}x{}x{}", s.height, s.width, s.channels)},
          {"number of classes", fmt::format("{}", classes())}};
}

// The checksum is of a few images from all over the set.
std::vector<Trait> ImageDataset::fingerprint() const {
  constexpr int64_t kImages = 16;
  std::vector<float> image(static_cast<size_t>(shape().numel()));
  uint64_t sum = 0;
  for (int64_t i = 0; i < std::min(kImages, size()); ++i) {
    const int32_t label = read(i * size() / kImages % size(), nullptr, image.data());
    sum = XXH64(image.data(), image.size() * sizeof(float), sum + static_cast<uint64_t>(label));
  }
  return {{"its number of images", fmt::format("{}", size())},
          {"a checksum of some images", fmt::format("{:016x}", sum)}};
}

std::unique_ptr<Batches> ImageDataset::training_batches(const LoaderOptions& options) const {
  return std::make_unique<Loader>(*this, options);
}

std::unique_ptr<Batches> ImageDataset::evaluation_batches(int64_t rows, const PrefetchOptions& options) const {
  return std::make_unique<EvalLoader>(*this, rows, options);
}

}  // namespace dgc
