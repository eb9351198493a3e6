#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/ahead.h"
#include "data/bad_example.h"
#include "data/prefetcher.h"
#include "data/speech_order.h"
#include "data/speech_reader.h"

namespace dgc {

// Utterances of about one length, for one worker and step. Time comes first, as recurrent layers want it.
struct SpeechBatch {
  int64_t step = 0;                       // global step in training; number of the batch in evaluation
  int worker = 0;                         // in [first_worker, first_worker + local_workers)
  int64_t frames = 0;                     // T: of its longest utterance
  int64_t features = 0;                   // F
  std::vector<float> values;              // [T, B, F]; 0 past an utterance's end
  std::vector<int32_t> lengths;           // [B] frames of each utterance, 1 ... T
  std::vector<int32_t> labels;            // of all utterances, one after the other, without padding or blanks
  std::vector<int32_t> label_lengths;     // [B] labels of each utterance, at least 1
  std::vector<int32_t> utterances;        // [B] their numbers in the corpus
  std::vector<std::string> bad_examples;  // a sentence for each that could not be read and was left out (skip)

  int64_t size() const { return static_cast<int64_t>(lengths.size()); }  // B
};

struct SpeechLoaderOptions {
  Sampling sampling;  // samples: the corpus's
  BucketOptions buckets;
  WorkerBatches workers;  // of this rank
  OnBadExample on_bad_example = OnBadExample::refuse;
  PrefetchOptions prefetch;
};

// Fills SpeechBatches of a source's plans in threads.
class SpeechBatches {
 public:
  enum class InPlaceOfBad {
    neighbour,  // the next shorter utterance that can be read (then the next longer): batches keep their size
    nothing,    // the batch is smaller
  };

  SpeechBatches(const SpeechReader&, std::unique_ptr<const BatchSource>, OnBadExample, InPlaceOfBad,
                const PrefetchOptions&);
  const SpeechBatch* next();  // as Prefetcher::next()

 private:
  struct Item {
    SpeechBatch batch;
    BatchPlan plan;
    std::vector<std::vector<float>> rows;  // features of each utterance
    std::unique_ptr<SpeechScratch> scratch;
  };
  void fill(int64_t number, Item&, const std::stop_token&) const;
  bool read(const BatchPlan&, int64_t utterance, Item&) const;
  bool read_neighbour(const BatchPlan&, int64_t utterance, Item&) const;

  const SpeechReader& reader_;
  std::unique_ptr<const BatchSource> source_;
  OnBadExample on_bad_example_;
  InPlaceOfBad in_place_of_bad_;
  Ahead<Item> ahead_;  // last: its threads use the others
};

// Training batches of a rank's workers: all of them at start_step in worker order, then at the next step, without end.
// They depend neither on the number of threads nor on where the rank started. Of an utterance that cannot be read and
// is skipped, its neighbour in length takes the place. The reader must outlive it.
class SpeechLoader {
 public:
  SpeechLoader(const SpeechReader&, const SpeechLoaderOptions&);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  const SpeechBatch& next() { return *batches_.next(); }  // as Loader::next()

 private:
  int64_t steps_per_epoch_;
  SpeechBatches batches_;
};

// Every utterance of a corpus once, from the shortest, not augmented; batches may be smaller than asked for, at the end
// or where utterances are skipped, but are never empty.
class SpeechEvalLoader {
 public:
  SpeechEvalLoader(const SpeechReader&, int64_t batch, OnBadExample, const PrefetchOptions&);

  const SpeechBatch* next();  // null when there is no more; valid until the next call
  // Sentences of batches that had nothing else in them, and so were not handed out.
  const std::vector<std::string>& bad_batches() const { return bad_batches_; }

 private:
  SpeechBatches batches_;
  std::vector<std::string> bad_batches_;
};

}  // namespace dgc
