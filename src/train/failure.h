#pragma once

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "dist/communicator.h"

// Who says what when a rank that is a process of its own fails: each error once, and before a launcher's own noise.
namespace dgc {

// What people read of an exception, and whose error it is.
struct Complaint {
  std::string text;
  bool users = false;  // exit code 2, else 1
};
Complaint complaint(const std::exception&);

// Leaves a process whose error this rank, or another one, has told already.
struct ToldError : std::runtime_error {
  explicit ToldError(const Complaint& c) : std::runtime_error(c.text), users(c.users) {}
  bool users;
};

// Whether an error that all ranks meet alike, before they can talk, is this process's to tell.
bool tells_for_all();

// Runs the work of a rank that is a process. An error is told at once, with the rank's number, then ends all other
// ranks, and leaves as a ToldError; those others only write it to their logs. Interrupted passes.
void as_rank(Communicator&, const std::function<void()>& work);

// Runs `work`, whose errors may be the same on all ranks, on each of them. When it fails anywhere it fails everywhere:
// what the first of those ranks met leaves this function there, ToldByPeer on all others. Collective.
void in_unison(Communicator&, Device&, const std::function<void()>& work);

}  // namespace dgc
