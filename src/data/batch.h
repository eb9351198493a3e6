#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sampler.h"

namespace dgc {

// What one worker trains on in a step, or an evaluation looks at at once: rows of images, of tokens, or of frames.
struct Batch {
  int64_t step = 0;             // global step in training; number of the batch in evaluation
  int worker = 0;               // in [first_worker, first_worker + local_workers)
  std::vector<float> images;    // [rows, height, width, channels]; of speech, frames [rows, streams, features]
  std::vector<int32_t> tokens;  // [rows, streams]: a row is one place in each of the texts read side by side
  std::vector<int32_t> labels;  // one for each image, or for each token; of speech [streams, 1 + most]: how many, which
  // Of speech:
  std::vector<int32_t> lengths;           // [streams] frames of each utterance; 0: it is not there
  std::vector<int32_t> samples;           // which utterance it is, of those that are there
  std::vector<std::string> bad_examples;  // a sentence for each that could not be read, and was left out
};

struct PrefetchOptions {
  int threads = 1;  // decode and augment in this many background threads
  int ahead = 4;    // batches kept ready, at least one per thread
};

struct LoaderOptions {
  Sampling sampling;
  int first_worker = 0, local_workers = 1;  // the workers of this rank
  int64_t start_step = 0;                   // global step = epoch * steps_per_epoch + step
  PrefetchOptions prefetch;
};

// Batches, one after another.
class Batches {
 public:
  virtual ~Batches() = default;
  // Null when there is no more; valid until the next call. Throws what reading this batch threw, now and at every later
  // call.
  virtual const Batch* next() = 0;
};

}  // namespace dgc
