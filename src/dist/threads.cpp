#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "dist/whole_communicator.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Shared by the ranks that meet: a barrier that an abort opens for good, and a slot for each rank's arguments.
//
// Between publish() and retire() the ranks read each other's memory. A rank that is thrown out of the barrier frees its
// memory, so it must not leave while others still read: hence the count of readers.
class Group {
 public:
  struct Slot {
    const void* data = nullptr;
    std::span<const float* const> workers;
    size_t size = 0;  // bytes of data, or elements of each worker
  };

  explicit Group(int ranks) : slots(static_cast<size_t>(ranks)), ranks_(ranks) {}

  void wait() { begin(0); }
  void publish() { begin(ranks_); }  // the own slot is filled in; returns when all slots are
  void retire() {                    // this rank has finished reading; returns when all ranks have
    std::unique_lock lock(mutex_);
    stop_reading();
    pass(lock, 0);
  }
  void leave() {  // replaces retire() in a rank that then aborts; returns when no rank reads any more
    std::unique_lock lock(mutex_);
    stop_reading();
    changed_.wait(lock, [&] { return reading_ == 0; });
  }

  void abort(const std::string& failure) {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    failure_ = failure;
    changed_.notify_all();
  }

  std::vector<Slot> slots;

 private:
  void begin(int readers) {
    std::unique_lock lock(mutex_);
    if (failed_) throw PeerFailed(failure_);
    pass(lock, readers);
  }

  void stop_reading() {
    if (--reading_ == 0) changed_.notify_all();
  }

  void pass(std::unique_lock<std::mutex>& lock, int readers) {
    const uint64_t round = round_;
    if (++waiting_ == ranks_) {
      waiting_ = 0;
      reading_ = readers;
      ++round_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return round_ != round || (failed_ && reading_ == 0); });
    if (round_ == round) throw PeerFailed(failure_);
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0, reading_ = 0;
  uint64_t round_ = 0;
  bool failed_ = false;
  std::string failure_;
};

// All ranks, and the groups in which they meet. A group is made when its first rank comes, and all groups fail
// together.
class Crew {
 public:
  explicit Crew(int ranks) : size(ranks) {}

  Group& group(const Ranks& ranks) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Group>& group = groups_[ranks];
    if (group == nullptr) {
      group = std::make_unique<Group>(ranks.size);
      if (!failure_.empty()) group->abort(failure_);
    }
    return *group;
  }
  void abort(int rank, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = fmt::format("rank {} failed: {}", rank, reason);
    for (const auto& [ranks, group] : groups_) group->abort(failure_);
  }

  void check() {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw PeerFailed(failure_);
  }

  void post(int from, int to, Mail::Letter letter) {
    check();
    const std::lock_guard lock(mutex_);
    letters_[{from, to}].push_back(std::move(letter));
  }
  Mail::Letter take(int from, int to) {
    check();
    const std::lock_guard lock(mutex_);
    std::deque<Mail::Letter>& waiting = letters_[{from, to}];
    if (waiting.empty()) return nullptr;
    Mail::Letter oldest = std::move(waiting.front());
    waiting.pop_front();
    return oldest;
  }
  // Bytes of letters that the receiver has not taken.
  size_t untaken(int from, int to) {
    const std::lock_guard lock(mutex_);
    size_t bytes = 0;
    for (const Mail::Letter& letter : letters_[{from, to}]) bytes += letter->size();
    return bytes;
  }

  const int size;

 private:
  std::mutex mutex_;
  std::map<Ranks, std::unique_ptr<Group>> groups_;
  std::map<std::pair<int, int>, std::deque<Mail::Letter>> letters_;  // by sender and receiver
  std::string failure_;
};

class ThreadMail final : public Mail {
 public:
  ThreadMail(Crew& crew, int rank) : crew_(crew), rank_(rank) {}
  void post(int to, Letter letter) override { crew_.post(rank_, to, std::move(letter)); }
  std::optional<std::vector<std::byte>> take(int from) override {
    const Letter letter = crew_.take(from, rank_);
    return letter == nullptr ? std::nullopt : std::optional(*letter);
  }
  size_t unsent(int to) override { return crew_.untaken(rank_, to); }

 private:
  Crew& crew_;
  int rank_;
};

class ThreadCommunicator final : public WholeCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<Crew> crew, int rank) : crew_(std::move(crew)), rank_(rank), mail_(*crew_, rank) {}

  std::string name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return crew_->size; }
  bool between_processes() const override { return false; }
  bool recordable() const override { return false; }

  void all_gather_among(const Ranks& ranks, Device& device, const void* mine, void* all, size_t bytes) override {
    exchange(crew_->group(ranks), place_among(ranks, rank_), device, {mine, {}, bytes}, [&](const Group& group) {
      auto* to = static_cast<std::byte*>(all);
      for (const Group::Slot& slot : group.slots) {
        if (bytes > 0) device.copy(to, slot.data, bytes);
        to += bytes;
      }
    });
  }

  void gather_shards_among(const Ranks& ranks, Device& device, std::span<const float* const> local_workers, float* mine,
                           size_t n) override {
    DGC_CHECK(!local_workers.empty(), "a rank without workers");
    const int place = place_among(ranks, rank_);
    const size_t row = shard_size(n, ranks.size);
    const size_t first = std::min(static_cast<size_t>(place) * row, n);
    const size_t count = std::min(row, n - first);
    exchange(crew_->group(ranks), place, device, {nullptr, local_workers, n}, [&](const Group& group) {
      for (const Group::Slot& slot : group.slots) {
        for (const float* worker : slot.workers) {
          if (count > 0) device.copy(mine, worker + first, count * sizeof(float));
          mine += row;
        }
      }
    });
  }

  void barrier_among(const Ranks& ranks, Device& device) override {
    device.synchronize();
    crew_->group(ranks).wait();
  }
  Mail* mail() override { return &mail_; }
  void abort(const std::string& reason) noexcept override { crew_->abort(rank_, reason); }
  void check() override { crew_->check(); }

 private:
  // The ranks' devices know nothing of each other: a device is idle before other ranks read from its memory, and has
  // done its own reading before they may write to theirs again.
  template <typename Read>
  static void exchange(Group& group, int place, Device& device, const Group::Slot& own, const Read& read) {
    device.synchronize();
    group.slots[static_cast<size_t>(place)] = own;
    group.publish();
    const bool same = std::ranges::all_of(group.slots, [&](const Group::Slot& slot) {
      return slot.size == own.size && slot.workers.size() == own.workers.size();
    });
    try {
      if (same) read(group);
      device.synchronize();
    } catch (...) {
      group.leave();
      throw;
    }
    group.retire();
    DGC_CHECK(same, "ranks exchange different sizes or worker counts");
  }

  std::shared_ptr<Crew> crew_;
  int rank_;
  ThreadMail mail_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks) {
  DGC_CHECK(ranks >= 1, "a group has at least one rank");
  const auto crew = std::make_shared<Crew>(ranks);
  std::vector<std::unique_ptr<Communicator>> all;
  all.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<ThreadCommunicator>(crew, rank));
  return all;
}

void run_ranks(std::span<const std::unique_ptr<Communicator>> communicators,
               const std::function<void(Communicator&)>& body) {
  std::mutex mutex;
  std::exception_ptr cause, follow_up;  // PeerFailed mostly repeats what another rank says better
  // Ends the others, who would wait for this rank. The exception that is being handled is the cause.
  const auto fail = [&](Communicator& own, const char* why) {
    own.abort(why);
    const std::lock_guard lock(mutex);
    if (!cause) cause = std::current_exception();
  };
  const auto run = [&](Communicator& own) {
    try {
      body(own);
    } catch (const PeerFailed& error) {
      {
        const std::lock_guard lock(mutex);
        if (!follow_up) follow_up = std::current_exception();
      }
      own.abort(error.what());  // of a damaged message this rank alone may know
    } catch (const std::exception& error) {
      fail(own, error.what());
    } catch (...) {
      fail(own, "unknown exception");
    }
  };
  std::vector<std::jthread> threads;
  for (const auto& communicator : communicators) {
    try {
      threads.emplace_back([&, &own = *communicator] { run(own); });
    } catch (const std::system_error& error) {
      fail(*communicator, error.what());
      break;
    }
  }
  threads.clear();  // joins
  if (cause) std::rethrow_exception(cause);
  if (follow_up) std::rethrow_exception(follow_up);
}

}  // namespace dgc
