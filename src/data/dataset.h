#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/sampling.h"
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
  // The dataset must outlive the batches.
  virtual std::unique_ptr<Batches> training_batches(const WorkerBatches&, const PrefetchOptions&) const = 0;
  // All of it once, in order, not augmented; the last batch may be smaller. batch: images, or places in each stream of
  // a text; of utterances, as many as the set has streams.
  virtual std::unique_ptr<Batches> evaluation_batches(int64_t batch, const PrefetchOptions&) const = 0;
  // Rows of an evaluation. Of text size() is so many times its streams; of speech, the most that any batch can have.
  virtual int64_t rows() const = 0;
};

}  // namespace dgc
