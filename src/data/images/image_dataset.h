#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "tensor/rng.h"

namespace dgc {

struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
  int64_t numel() const { return height * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

// The random numbers of one sample in one epoch. A pure function of (seed, epoch, sample, slot): augmentation is the
// same whichever worker or thread reads the sample, and after a resume.
class Draw {
 public:
  Draw(uint64_t seed, int64_t epoch, int64_t sample)
      : rng_(seed, rng_stream("augment", static_cast<uint64_t>(epoch))),
        first_(static_cast<uint64_t>(sample) * kSlots) {}

  static constexpr uint64_t kSlots = 64;  // numbers a sample may use

  float uniform(uint64_t slot) const { return rng_.uniform(first_ + slot); }
  uint32_t below(uint64_t slot, uint32_t n) const { return rng_.below(first_ + slot, n); }

 private:
  Philox rng_;
  uint64_t first_;
};

// Labelled images of one shape.
class ImageDataset : public Dataset {
 public:
  virtual ImageShape shape() const = 0;  // shape of what read() writes

  // Writes sample i, normalised, as fp32 [height, width, channels], and returns its label in [0, classes()). The image
  // is augmented if there is a draw, and not without one (evaluation). Safe to call from several threads. Throws
  // UserError that names the file when the image cannot be decoded.
  virtual int32_t read(int64_t i, const Draw* draw, float* out) const = 0;

  Shape sample() const final { return {shape().height, shape().width, shape().channels}; }
  int64_t rows() const final { return size(); }
  std::vector<Trait> traits() const final;
  std::vector<Trait> fingerprint() const final;
  int64_t steps_per_epoch(const Sampling& sampling) const final { return sampling.steps_per_epoch(); }
  std::unique_ptr<Batches> training_batches(const WorkerBatches&, const PrefetchOptions&) const final;
  std::unique_ptr<Batches> evaluation_batches(const EvaluationBatches&, const PrefetchOptions&) const final;
};

}  // namespace dgc
