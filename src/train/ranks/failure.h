#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "dist/communicator.h"

// Reports errors of ranks that are processes: each error once, and before the messages of the launcher.
namespace dgc {

// How dgc ends. Of its child processes children.h knows some more.
enum ExitCode : int { kSuccess = 0, kOurError = 1, kUserError = 2, kInterrupted = 130 };

// The text that people read for an exception, and whether the user caused the error.
struct Complaint {
  std::string text;
  bool users = false;  // kUserError, else kOurError
};
Complaint complaint(const std::exception&);

// Ends a process after this rank or another one has told the error.
struct ToldError : std::runtime_error {
  explicit ToldError(const Complaint& c) : std::runtime_error(c.text), users(c.users) {}
  bool users;
};

// Waits, so that a process that tells an error for all exits before this one; until `most` is over, or a launcher sends
// a signal to end this process, which then leaves with an exit code of its own. Returns whether such a signal came.
bool give_head_start(std::chrono::milliseconds most);

// Tells an error that all ranks may meet alike before they can communicate. Rank 0 tells it at once. Another rank waits
// some seconds for the launcher to end it, and tells the error only if that has not happened: rank 0 may have been
// given other arguments, and have no error to tell.
void tell_for_all(const std::string& error);

// Runs the work of a rank that is a process. An error is told with the rank's number, by rank 0 at once and by another
// rank within a second unless it learns of another error meanwhile. The error then ends all other ranks, and leaves
// as_rank() as a ToldError. The other ranks write the error only to their logs. Interrupted passes, and so does an
// error of this rank where the communicator connects no other.
void as_rank(Communicator&, const std::function<void()>& work);

// Runs `work` on every rank; its errors may be the same on all of them. When `work` fails on any rank, in_unison()
// throws on every rank: the error itself on the first rank that failed, ToldByPeer on all others. Collective.
void in_unison(Communicator&, Device&, const std::function<void()>& work);

}  // namespace dgc
