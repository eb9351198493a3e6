#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dist/communicator.h"
#include "dist/launch/launch.h"
#include "dist/meeting/rendezvous.h"

// Messages, signals and errors of a rank that is a process, until all ranks have met without MPI.
namespace dgc {

// Called again and again while a rank waits for others: logs at intervals of `every` whom the rank waits for, and
// throws Interrupted once an InterruptGuard has noted a signal.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds every = std::chrono::seconds(10)) : every_(every) {}
  void operator()(const std::string& waiting);

 private:
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

// Runs what a rank does before it has met the others. An error of `work` is told at once. It leaves or_decline() as a
// ToldError after the ranks that wait at the meeting point, or reach it within the meeting's timeout, have learned of
// it. An error that another rank tells leaves it as the ToldByPeer that it is, likewise. With a timeout of 0, and where
// there is nobody to meet, the error passes. Interrupted always passes. `work` may still fill in `meeting`.
void or_decline(const Launch&, const Communicator& peers, const RendezvousOptions& meeting,
                const std::function<void()>& work);

}  // namespace dgc
