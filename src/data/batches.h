#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dgc {

// What one worker trains on in a step, or an evaluation looks at at once: rows of images, of tokens, or of frames.
struct Batch {
  int64_t step = 0;  // global step in training; number of the batch in evaluation
  int worker = 0;    // in [first_worker, first_worker + local_workers)
  // What the network reads, one of the two.
  std::vector<float> values;    // images [rows, height, width, channels], or frames of speech [rows, streams, features]
  std::vector<int32_t> tokens;  // of text [rows, streams]: a row is one place in each of the texts read side by side
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

// What batches 0 ... count() - 1 consist of.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t count() const = 0;
  // Fills a batch, which has the memory of an earlier one. Called by several threads at once; `thread`, in [0,
  // PrefetchOptions::threads), says which, so that each can have scratch memory. May give up early when a stop is
  // requested.
  virtual void fill(int64_t number, int thread, Batch&, const std::stop_token&) = 0;
  // Called with each batch in order by Batches::next(), which passes over a batch for which this returns false.
  virtual bool hand_out(Batch&) { return true; }
};

// Fills the batches of a source in background threads and hands them out in order. The slots form a ring: batch n lives
// in slot n % slots, and its memory is used again once the caller has moved on. A thread takes the lowest batch nobody
// has taken and fills all of it, so a batch does not depend on the threads.
class Batches {
 public:
  Batches(std::unique_ptr<BatchSource>, const PrefetchOptions&);
  ~Batches();  // waits for at most the sample that each thread has in hand

  // Null when there is no more; valid until the next call. Throws what reading this batch threw, now and at every later
  // call.
  const Batch* next();

 private:
  struct Slot {
    Batch batch;
    bool ready = false;
    std::exception_ptr error;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  void run(int thread, const std::stop_token&);
  Batch* wait();   // for the current batch; null past the last
  void release();  // the current batch's slot

  std::unique_ptr<BatchSource> source_;
  int64_t count_;
  std::vector<Slot> slots_;
  bool handed_out_ = false;  // the caller has the current batch

  std::mutex mutex_;  // guards what follows, and every slot's ready
  std::condition_variable_any room_, ready_;
  int64_t taken_ = 0;                  // batches that threads have begun
  int64_t current_ = 0;                // batch that the caller has, or gets next
  std::vector<std::jthread> threads_;  // last: they stop before anything they use goes away
};

}  // namespace dgc
