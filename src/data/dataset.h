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

// A property of a set, in words: {"image shape", "28x28x1"}.
struct Trait {
  std::string name, value;
  bool operator==(const Trait&) const = default;
};

// What a model is trained on or measured by: images, text, or speech.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;     // samples: images, words that are predicted, or utterances
  virtual Shape sample() const = 0;     // shape of a row: [height, width, channels], [streams], or [streams, features]
  virtual int64_t classes() const = 0;  // labels are in [0, classes()); of text, the words of the vocabulary
  // What people call the classes, [classes()]; empty where nobody has named them.
  virtual std::vector<std::string> class_names() const { return {}; }
  // The most labels of one sequence, in sets of sequences that are padded to one length and have a list of labels each.
  // 0: each row, or each stream of a row, has one label.
  virtual int64_t most_labels() const { return 0; }

  virtual std::vector<Trait> traits() const = 0;  // equal in all sets that one model can read
  // Properties by which sets of other content mostly differ: the number of samples, and a checksum of some images, of
  // all words, or of all transcripts. Throws UserError when a sample cannot be read.
  virtual std::vector<Trait> fingerprint() const = 0;
  // What the user of the set should know, such as missing classes or utterances, with one sentence for each.
  virtual std::vector<std::string> remarks() const { return {}; }

  // sampling.samples is size(), and sampling.batch_per_worker counts rows. Throws UserError if an epoch has no whole
  // step.
  virtual int64_t steps_per_epoch(const Sampling&) const = 0;
  // The dataset must outlive the batches. Throws as steps_per_epoch() does.
  virtual std::unique_ptr<Batches> training_batches(const WorkerBatches&, const PrefetchOptions&) const = 0;
  // The batches of a share of the set; all shares together are the whole set once, in order and not augmented. The last
  // batch may be smaller. Rows of a batch are images, or words of each stream of a text, of which a share is all; a
  // batch of speech has an utterance for each of its streams, whatever the rows.
  virtual std::unique_ptr<Batches> evaluation_batches(const EvaluationBatches&, const PrefetchOptions&) const = 0;
  // Number of rows of an evaluation: images, or words of each stream of a text; for speech, the most rows that a batch
  // can have.
  virtual int64_t rows() const = 0;
};

}  // namespace dgc
