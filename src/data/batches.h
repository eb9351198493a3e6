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

// What one worker trains on in a step, or what an evaluation reads at once: rows of images, of tokens or of frames.
struct Batch {
  int64_t step = 0;  // global step in training; number of the batch in evaluation
  int worker = 0;    // in [first_worker, first_worker + local_workers)
  // The network's input: values or tokens.
  std::vector<float> values;    // images [rows, height, width, channels], or frames of speech [rows, streams, features]
  std::vector<int32_t> tokens;  // of text [rows, streams]: a row has one word of each stream
  // One label per image or token; of speech [streams, 1 + most_labels()]: the number of labels, then the labels.
  std::vector<int32_t> labels;
  // Speech only:
  std::vector<int32_t> lengths;           // [streams] frames of each stream's utterance; 0: no utterance
  std::vector<int32_t> samples;           // number of each utterance that is there, in the order of streams
  std::vector<std::string> bad_examples;  // a sentence for each utterance that could not be read and was left out
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
};

// Fills the batches of a source in background threads and hands them out in order. The slots form a ring: batch n lives
// in slot n % slots, and its memory is used again once the caller has moved on. A thread takes the lowest batch nobody
// has taken and fills all of it, so a batch does not depend on the threads.
class Batches {
 public:
  Batches(std::unique_ptr<BatchSource>, const PrefetchOptions&);
  ~Batches();  // waits for at most the sample, or the batch of text, that each thread has in hand

  // Returns the next batch, which is valid until the next call; null past the last one. Throws what filling the batch
  // threw, now and at every later call.
  const Batch* next();
  // What filling one of the `count` batches that next() returns next threw, as far as they are filled by now; null:
  // nothing. Does not wait.
  std::exception_ptr error_within(int64_t count);

 private:
  struct Slot {
    Batch batch;
    bool ready = false;
    std::exception_ptr error;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  void run(int thread, const std::stop_token&);
  const Batch* wait();  // for the current batch; null past the last
  void release();       // the current batch's slot

  std::unique_ptr<BatchSource> source_;
  int64_t count_;
  std::vector<Slot> slots_;
  bool handed_out_ = false;  // the caller has the current batch

  std::mutex mutex_;  // guards the members below, and `ready` of every slot
  std::condition_variable_any room_, ready_;
  int64_t taken_ = 0;                  // batches that threads have begun
  int64_t current_ = 0;                // batch that the caller has, or gets next
  std::vector<std::jthread> threads_;  // declared last, so destroyed first: the threads use the members above
};

}  // namespace dgc
