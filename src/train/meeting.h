#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dist/communicator.h"
#include "dist/launch.h"
#include "dist/rendezvous.h"

// What a rank that is a process of its own says and heeds until all ranks have met, where no MPI connects them.
namespace dgc {

// A rank's patience with the others: it says every so often whom it waits for, and ends at the first signal that an
// InterruptGuard has noted, with Interrupted.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds every = std::chrono::seconds(10)) : every_(every) {}
  void operator()(const std::string& waiting);

 private:
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

// Runs what a rank does before it has met the others. An error of it is told at once and leaves as a ToldError, when
// those have learned it who wait at the meeting point, or come to it within `timeout`; 0: they are not told.
// Interrupted passes.
void or_decline(const Launch&, const Communicator& peers, std::chrono::milliseconds timeout,
                const std::function<void()>& work);

}  // namespace dgc
