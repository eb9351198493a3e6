#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "data/dataset.h"
#include "data/text/vocabulary.h"
#include "kernels/backend.h"
#include "models/network.h"
#include "run/metric.h"

namespace dgc {

// The sets of one run, owned by someone else.
struct DataView {
  const Dataset& train;
  const Dataset& test;
  const Dataset* valid = nullptr;          // where has_validation_set(); steers a plateau schedule
  const Vocabulary* vocabulary = nullptr;  // only for text
  std::string train_xxh64 = {};            // of what tells the training set from others; empty: not looked at
};

struct Datasets {
  std::optional<Vocabulary> vocabulary;  // only for text
  std::unique_ptr<Dataset> train, test;
  std::unique_ptr<Dataset> valid;  // where has_validation_set()

  DataView view() const { return {*train, *test, valid.get(), vocabulary ? &*vocabulary : nullptr}; }
};

// How a speech model's output becomes text.
struct DecodingOptions {
  int64_t beam = 1;               // prefixes kept; 1: greedy, the likeliest alignment
  std::filesystem::path words{};  // a word n-gram model in ARPA's format, also gzipped; empty: none
  double word_weight = 1;         // factor on the word model's log probability
  double word_bonus = 0;          // added for each word
};

struct ScoringOptions {
  DecodingOptions decoding{};  // only for speech
  // Only for speech: gets the texts of each utterance of the test set, the shortest utterance first.
  std::function<void(const std::string& reference, const std::string& heard)> told{};

  bool asks_for_texts() const { return decoding.beam != 1 || !decoding.words.empty() || told; }
};

// What a scorer counts in a batch, or sums of it; what it does not use is 0.
using Counts = std::array<double, 8>;

// Turns what a network makes of a data set into measures. They come of sums over batches, so ranks can share the
// batches out.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // output: the network's output for this batch. stats: the statistics of its loss, which are {loss, counts...} of the
  // result unless a scorer counts something else.
  virtual Counts count(Backend&, const Batch&, ConstView output, const LossStats& stats);
  // sums: over all batches of the set. left_out: a sentence for each sample that could not be read. Always has the same
  // metrics. Throws UserError where nothing of the set could be read.
  virtual Measures measures(const Counts& sums, const std::vector<std::string>& left_out) const = 0;
};

// A kind of data that models learn: images, text or speech. A Task says all that differs between the kinds, so that
// training, evaluation, plans and reports do not depend on the kind. Tasks have no state.
class Task {
 public:
  virtual ~Task() = default;

  virtual const char* samples() const = 0;  // what a data set is counted in: "images"
  virtual std::string batch_text(const Config&) const;
  virtual std::string size_text(const Datasets&) const { return samples(); }  // the text behind the numbers of samples

  // Throws UserError that names the file and what is wrong with it, or a trait that the sets must share but do not.
  virtual Datasets open(const Config&) const = 0;
  // Opens the sets that evaluate a run: no training set, and the run's own vocabulary.
  virtual Datasets open_to_evaluate(const Config&, const std::filesystem::path& run) const = 0;
  // Returns the config with the values that it leaves to the data.
  virtual Config completed(Config config, const Datasets&) const { return config; }
  // Throws UserError when the data have classes, or words, that a network with so many outputs does not know.
  virtual void require_classes(const Config&, int64_t classes, const Dataset&) const;

  // Throws UserError where the network has nothing to learn from the set.
  virtual void require_learnable(const Network&, const Dataset&) const {}
  // Sentences on what is unusual in the sets, for this config and this network.
  virtual std::vector<std::string> remarks(const Config&, const Network&, const Datasets&) const { return {}; }

  // Sizes of batches as far as the config alone tells them.
  virtual Shape sample(const Config&, Split) const = 0;       // Dataset::sample()
  virtual int64_t most_rows(const Config&, Split) const = 0;  // the most that a batch has
  // Dataset::most_labels(). Only the data knows it, so this is a number to plan with.
  virtual int64_t most_labels(const Config&) const { return 0; }
  // Rows of a micro-batch, as Sampling counts them, and samples that a worker takes from the data in a step.
  virtual int64_t rows_per_micro_batch(const Config& config) const { return config.training.micro_batch(); }
  virtual int64_t samples_per_step(const Config& config) const { return config.training.batch_per_worker; }
  // A clause about an epoch that goes on with another number of workers, where `repeated` samples come again.
  virtual std::string after_redistribution(int64_t repeated) const;

  // split: Split::valid or Split::test. Data set and network must outlive the scorer.
  virtual std::unique_ptr<Scorer> make_scorer(const Dataset&, const Network&, Split, const ScoringOptions&) const = 0;
  virtual bool has_texts() const { return false; }  // whether ScoringOptions apply
  // Throws UserError where the logits of a test set are too many for a file.
  virtual void require_logits() const {}

  // The metrics that people compare: rows of a table of results, the curve over a run, and the one number that counts
  // in the end.
  struct Compared {
    std::vector<const Metric*> table;
    const Metric* curve;
    const Metric* outcome;
  };
  virtual Compared compared() const = 0;
};

// Images and speech with a validation set, as has_validation_set() says, are tasks of their own.
const Task& image_task(const Config&);
const Task& text_task();
const Task& speech_task(const Config&);
const Task& task_of(const Config&);

inline Datasets open_sets(const Config& config) { return task_of(config).open(config); }

// Samples of a step of all workers together.
int64_t global_batch(const Config&);
// Which micro-batch has which samples of the training set, in a run of so many workers. To the data each micro-batch is
// that of a worker of its own: a worker's come one after the other.
Sampling sampling_of(const Config&, const Dataset& train, int64_t workers);
// The same for a run as the config says.
Sampling sampling_of(const Config&, const Dataset& train);
// The micro-batches of a rank's workers, the first of which is number `first_worker` of all.
WorkerBatches worker_batches(const Config&, const Dataset& train, int64_t first_worker, int64_t start_step);
// All numbers of rows that a micro-batch may have.
std::vector<int64_t> batch_rows(const Config&, const Dataset& train);

// Throws UserError that names the key unless all traits and the names of the classes of both sets are equal, because a
// model of the training set must be able to read the other set.
void require_alike(const Dataset& train, const Dataset& other, const char* name, const char* key);
// The two sets of one folder, data.path, once require_alike() has compared them.
Datasets alike(std::unique_ptr<Dataset> train, std::unique_ptr<Dataset> test);

// The sets that are there, with the words for them: "training", "validation", "test".
std::vector<std::pair<const Dataset*, const char*>> named_sets(const Datasets&);

// Logs all remarks of the sets as warnings, each once: a validation set that is held back has the training set's.
void tell_remarks(const Datasets&);

}  // namespace dgc
