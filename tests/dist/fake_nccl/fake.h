#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "nccl.h"

// What a test plants in the fake, and what it counts.
struct Fake {
  std::atomic<ncclResult_t> start{ncclSuccess};  // of every communicator; ncclInProgress: it never ends
  std::atomic<int> ill_rank{-1};                 // whose communicator finds an asynchronous error
  std::atomic<int> graphs{0};                    // that hold a communicator: until there are none, no abort returns
  std::atomic<int> finalized{0}, destroyed{0}, aborted{0};
};
Fake& fake();
void reset_fake();

// What this thread has queued, in order: "fork", "all_gather" and so on.
std::vector<std::string>& calls();
// Of its records and waits, on which stream.
std::vector<cudaStream_t>& streams();
