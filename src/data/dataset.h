#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "tensor/rng.h"
#include "tensor/shape.h"

namespace dgc {

enum class Split { train, valid, test };

// What a model has to find the same in every set that it reads, in words: {"image shape", "28x28x1"}.
struct Trait {
  std::string name, value;
  bool operator==(const Trait&) const = default;
};

// What a model is trained on or measured by: images, text, or speech.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;     // samples: images, words that are predicted, or utterances
  virtual Shape sample() const = 0;     // of a row: [height, width, channels], [streams], or [streams, features]
  virtual int64_t classes() const = 0;  // labels are in [0, classes()): of text, words of the vocabulary
  // Of sequences that are padded to one length, each with labels of its own, the most that one has. 0: each row has a
  // label, or each of its streams.
  virtual int64_t most_labels() const { return 0; }

  virtual std::vector<Trait> traits() const = 0;  // the same names for every set of one kind
  // What is the same only for sets that hold the same: how many samples, and a checksum. Throws UserError when a sample
  // cannot be read.
  virtual std::vector<Trait> fingerprint() const = 0;
  // What whoever uses the set should know, a sentence each, as of classes or utterances that are missing.
  virtual std::vector<std::string> remarks() const { return {}; }

  // Sampling's samples are size(), its batch_per_worker rows. Throws UserError when that would be none.
  virtual int64_t steps_per_epoch(const Sampling&) const = 0;
  // Of a rank's workers: all of them at start_step in worker order, then at the next step, without end. The dataset
  // must outlive them, as it must those of the next.
  virtual std::unique_ptr<Batches> training_batches(const LoaderOptions&) const = 0;
  // All of it once, in order, so many rows at a time; the last batch may have fewer.
  virtual std::unique_ptr<Batches> evaluation_batches(int64_t rows, const PrefetchOptions&) const = 0;
  // Rows of an evaluation. Of text size() is so many times its streams; of speech, the most that any batch can have.
  virtual int64_t rows() const = 0;
};

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

// Labelled images of one shape. Batches come from data/loader.h.
class ImageDataset : public Dataset {
 public:
  virtual ImageShape shape() const = 0;  // of what read() writes

  // Writes sample i, normalised, as fp32 [height, width, channels], and returns its label in [0, classes()). With a
  // draw it is augmented; without (evaluation) it is not. Safe to call from several threads. Throws UserError that
  // names the file when it cannot be decoded.
  virtual int32_t read(int64_t i, const Draw* draw, float* out) const = 0;

  Shape sample() const final { return {shape().height, shape().width, shape().channels}; }
  int64_t rows() const final { return size(); }
  std::vector<Trait> traits() const final;
  std::vector<Trait> fingerprint() const final;
  int64_t steps_per_epoch(const Sampling& sampling) const final { return sampling.steps_per_epoch(); }
  std::unique_ptr<Batches> training_batches(const LoaderOptions&) const final;
  std::unique_ptr<Batches> evaluation_batches(int64_t rows, const PrefetchOptions&) const final;
};

}  // namespace dgc
