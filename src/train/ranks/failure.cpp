#include "train/ranks/failure.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "dist/launch/launch.h"
#include "tensor/errors.h"
#include "train/ranks/interrupt.h"
#include "train/ranks/shared_problem.h"

namespace dgc {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

constexpr milliseconds kMoment(1000), kHeadStart(3000);

// Launchers end all processes at the first nonzero exit. A rank that was told of an error waits, so that the failed
// rank exits first and its message and exit code are the run's.
[[noreturn]] void leave_after(const ToldByPeer& error) {
  spdlog::debug("{}", error.what());
  give_head_start(kHeadStart);
  throw ToldError({error.what(), error.users});
}

// Some errors, such as the death of a rank, reach all other ranks at once. Then rank 0 tells the error first, and most
// launchers end the other ranks before they tell it too.
[[noreturn]] void tell(Communicator& communicator, const std::exception& error) {
  const auto deadline = std::chrono::steady_clock::now() + kMoment;
  while (communicator.rank() > 0 && std::chrono::steady_clock::now() < deadline) {
    try {
      communicator.check();
    } catch (const ToldByPeer& told) {
      leave_after(told);
    } catch (const PeerFailed&) {
      // The communicator is gone, so this loop only waits for the deadline.
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  const Complaint c = complaint(error);
  spdlog::error("rank {}: {}", communicator.rank(), c.text);
  communicator.abort(c.text);
  throw ToldError(c);
}

}  // namespace

Complaint complaint(const std::exception& error) {
  if (dynamic_cast<const UserError*>(&error) != nullptr) return {error.what(), true};
  // The user chose the paths, so what the system refuses to do with a path is the user's error: a folder of someone
  // else's, a name that is too long.
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return {fmt::format("{}: {}", files->path1().string(), files->code().message()), true};
  }
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {  // of a thread or process
    return {
        "the system lets this process start no more threads or processes: raise the limit of this user (ulimit -u) or "
        "of this container, or lower ranks, threads and data.threads",
        true};
  }
  const bool expected =
      dynamic_cast<const PeerFailed*>(&error) != nullptr || dynamic_cast<const Interrupted*>(&error) != nullptr;
  if (expected) return {error.what(), false};
  const bool no_memory_to_fork = system != nullptr && system->code() == std::errc::not_enough_memory;
  if (no_memory_to_fork || dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {
        "out of memory: the machine has no more for this process; the data set, data.threads with the batches that "
        "they read ahead and the heaviest files under data.path are what to make smaller",
        true};
  }
  return {std::string("internal error: ") + error.what(), false};
}

// A signal ends the wait, but not the process: srun's exit code is the highest of all ranks', and that of a process
// which srun has ended with SIGTERM is 143.
bool give_head_start(milliseconds most) {
  const InterruptGuard guard;
  const auto end = std::chrono::steady_clock::now() + most;
  while (!interrupted() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(10));
  return interrupted();
}

void tell_for_all(const std::string& error) {
  int rank = 0;
  try {
    rank = read_ranks().rank;
  } catch (const UserError&) {
    // The variables of a launcher contradict each other, so this process is taken for one that is alone.
  }
  if (rank == 0) {
    spdlog::error("{}", error);
  } else if (!give_head_start(seconds(5))) {
    spdlog::error("rank {}: {}", rank, error);
  }
}

// Ranks that meet without MPI are told of errors before a communicator connects them.
void as_rank(Communicator& communicator, const std::function<void()>& work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (const ToldError& error) {
    communicator.abort(error.what());
    throw;
  } catch (const ToldByPeer& error) {
    leave_after(error);
  } catch (const std::exception& error) {
    if (communicator.size() == 1) throw;
    tell(communicator, error);
  }
}

void in_unison(Communicator& communicator, Device& device, const std::function<void()>& work) {
  enum class Outcome : char { good, ours, users };
  std::exception_ptr error;
  Complaint own;
  Outcome mine = Outcome::good;
  try {
    work();
  } catch (const PeerFailed&) {
    throw;
  } catch (const std::exception& e) {
    error = std::current_exception();
    own = complaint(e);
    mine = own.users ? Outcome::users : Outcome::ours;
  }
  const std::vector<Outcome> all = gather_host<Outcome>(communicator, device, {&mine, 1});
  const auto bad = std::ranges::find_if(all, [](Outcome outcome) { return outcome != Outcome::good; });
  if (bad == all.end()) return;
  const auto rank = static_cast<int>(bad - all.begin());
  const std::string why = shared_problem(communicator, device, own.text);
  if (rank == communicator.rank()) std::rethrow_exception(error);
  throw ToldByPeer(why, *bad == Outcome::users);
}

}  // namespace dgc
