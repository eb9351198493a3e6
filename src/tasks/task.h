#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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
  const Dataset* valid = nullptr;          // of text: what decides on the learning rate
  const Vocabulary* vocabulary = nullptr;  // of text
};

struct Datasets {
  std::optional<Vocabulary> vocabulary;  // of text
  std::unique_ptr<Dataset> train, test;
  std::unique_ptr<Dataset> valid;  // of text

  DataView view() const { return {*train, *test, valid.get(), vocabulary ? &*vocabulary : nullptr}; }
};

// How a speech model's output becomes text.
struct DecodingOptions {
  int64_t beam = 1;               // prefixes kept; 1: greedy, the likeliest alignment
  std::filesystem::path words{};  // a word n-gram model in ARPA's format, also gzipped; empty: none
  double word_weight = 1;         // of its log probability
  double word_bonus = 0;          // for each word
};

struct ScoringOptions {
  DecodingOptions decoding{};  // of speech
  // Of speech: gets the texts of each utterance, from the shortest.
  std::function<void(const std::string& reference, const std::string& heard)> told{};

  bool asks_for_texts() const { return decoding.beam != 1 || !decoding.words.empty() || told; }
};

// Turns what a network makes of a data set into measures.
class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual void start() = 0;  // of an evaluation
  // output: of the network, for this batch; stats: of its loss
  virtual void add(Backend&, const Batch&, ConstView output, const LossStats& stats) = 0;
  virtual Measures measures() const = 0;  // of the same metrics at any time
};

// A kind of data that models learn: images, text or speech. All that differs between the kinds is said here, so that
// whoever trains, evaluates, plans or reports knows none of them. Tasks have no state.
class Task {
 public:
  virtual ~Task() = default;

  virtual const char* samples() const = 0;  // what a data set is counted in: "images"
  virtual std::string batch_text(const Config&) const;
  virtual std::string size_text(const Datasets&) const { return samples(); }  // what the numbers of samples are of

  // Throws UserError that names the file and what is wrong with it, or in what the sets differ that a model needs
  // alike.
  virtual Datasets open(const Config&) const = 0;
  // To evaluate a run: no training set, and the run's own vocabulary.
  virtual Datasets open_to_evaluate(const Config&, const std::filesystem::path& run) const = 0;
  // With what the config leaves to the data.
  virtual Config completed(Config config, const Datasets&) const { return config; }
  // Throws UserError when the data have classes, or words, that a network with so many outputs does not know.
  virtual void require_classes(const Config&, int64_t classes, const Dataset&) const;

  // What the config alone tells of batches. Of Split::train or Split::test:
  virtual Shape sample(const Config&, Split) const = 0;       // Dataset::sample()
  virtual int64_t most_rows(const Config&, Split) const = 0;  // of a batch
  virtual int64_t evaluated_sets() const { return 1; }
  // What a worker takes of its data in a step: rows, as Sampling counts them, and samples.
  virtual int64_t rows_per_step(const Config& config) const { return config.training.batch_per_worker; }
  virtual int64_t samples_per_step(const Config& config) const { return config.training.batch_per_worker; }
  // What becomes of an epoch that goes on with another number of workers, where so many samples come again: a clause.
  virtual std::string after_redistribution(int64_t repeated) const;

  // split: Split::valid or Split::test. Both must outlive it.
  virtual std::unique_ptr<Scorer> make_scorer(const Dataset&, const Network&, Split, const ScoringOptions&) const = 0;
  virtual bool has_texts() const { return false; }  // whether ScoringOptions say something
  // Throws UserError where the logits of a test set are too many for a file.
  virtual void require_logits() const {}

  // What people compare: the rows of a table of results, the curve over a run, and the one number that counts in the
  // end.
  struct Compared {
    std::vector<const Metric*> table;
    const Metric* curve;
    const Metric* outcome;
  };
  virtual Compared compared() const = 0;
};

const Task& image_task();
const Task& text_task();
const Task& speech_task();
const Task& task_of(const Config&);

inline Datasets open_sets(const Config& config) { return task_of(config).open(config); }

// Samples of a step of all workers together.
int64_t global_batch(const Config&);
// Rows of the batches of a worker, of all numbers that they may have.
std::vector<int64_t> batch_rows(const Config&, const Dataset& train);

// Throws UserError that names the key when a model of the training set could not read another one: each of the traits
// must be the same.
void require_alike(const Dataset& train, const Dataset& other, const char* name, const char* key);

// Warns of all that the sets remark.
void tell_remarks(const Datasets&);

}  // namespace dgc
