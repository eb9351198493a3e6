#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "dist/communicator.h"
#include "dist/ordered_sum.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// What the ranks share: a barrier that an abort opens for good, and each rank's view of its own arguments.
//
// Between publish() and retire() the ranks read each other's memory. A rank that is thrown out of the barrier frees its
// memory, so it must not leave while others still read: hence the count of readers.
class Group {
 public:
  struct Slot {
    std::span<const std::byte> bytes;
    std::span<const float* const> workers;
    float* out = nullptr;
    size_t n = 0;
  };

  explicit Group(int ranks) : slots(static_cast<size_t>(ranks)), ranks_(ranks) {}

  void wait() { begin(0); }
  void publish() { begin(ranks_); }  // my slot is filled in; returns when all slots are
  void advance() { end(ranks_); }    // I have finished this part of the reading; returns when all have
  void retire() { end(0); }          // I have finished reading; returns when all have

  void abort(int rank, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    failure_ = fmt::format("rank {} failed: {}", rank, reason);
    changed_.notify_all();
  }

  std::vector<Slot> slots;

 private:
  void begin(int readers) {
    std::unique_lock lock(mutex_);
    if (failed_) throw PeerFailed(failure_);
    pass(lock, readers);
  }

  void end(int readers) {
    std::unique_lock lock(mutex_);
    if (--reading_ == 0) changed_.notify_all();
    pass(lock, readers);
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

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  std::string name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->slots.size()); }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    DGC_CHECK(all.size() == mine.size() * group_->slots.size(), "all_gather sizes");
    my_slot().bytes = mine;
    group_->publish();
    bool same = true;  // checked after the reading: nothing may throw in between
    std::byte* to = all.data();
    for (const Group::Slot& slot : group_->slots) {
      same = same && slot.bytes.size() == mine.size();
      if (same && !mine.empty()) std::memcpy(to, slot.bytes.data(), mine.size());
      to += mine.size();
    }
    group_->retire();
    DGC_CHECK(same, "ranks gather parts of different sizes");
  }

  void all_reduce_ordered(std::span<const float* const> local_workers, float* out, size_t n) override {
    DGC_CHECK(!local_workers.empty(), "a rank without workers");
    workers_.resize(local_workers.size() * group_->slots.size());
    my_slot() = {{}, local_workers, out, n};
    group_->publish();
    bool same = true;
    auto to = workers_.begin();
    for (const Group::Slot& slot : group_->slots) {
      same = same && slot.n == n && slot.workers.size() == local_workers.size();
      if (same) to = std::ranges::copy(slot.workers, to).out;
    }
    // Each rank sums its own shard; then everyone copies the others' shards.
    if (same) ordered_sum(workers_, out, shard(rank_, n), shard(rank_ + 1, n));
    group_->advance();
    for (int r = 0; same && r < size(); ++r) {
      const size_t first = shard(r, n), count = shard(r + 1, n) - first;
      if (r == rank_ || count == 0) continue;
      std::memcpy(out + first, group_->slots[static_cast<size_t>(r)].out + first, count * sizeof(float));
    }
    group_->retire();
    DGC_CHECK(same, "ranks reduce different sizes or worker counts");
  }

  void barrier() override { group_->wait(); }
  void abort(const std::string& reason) noexcept override { group_->abort(rank_, reason); }

 private:
  Group::Slot& my_slot() { return group_->slots[static_cast<size_t>(rank_)]; }
  size_t shard(int rank, size_t n) const { return n * static_cast<size_t>(rank) / group_->slots.size(); }

  std::shared_ptr<Group> group_;
  int rank_;
  std::vector<const float*> workers_;  // of all ranks, kept so that a step allocates nothing
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks) {
  DGC_CHECK(ranks >= 1, "a group has at least one rank");
  const auto group = std::make_shared<Group>(ranks);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  return all;
}

void run_ranks(std::span<const std::unique_ptr<Communicator>> communicators,
               const std::function<void(Communicator&)>& body) {
  std::mutex mutex;
  std::exception_ptr cause, follow_up;  // PeerFailed only repeats what another rank says better
  std::vector<std::jthread> threads;
  for (const auto& communicator : communicators) {
    threads.emplace_back([&, &own = *communicator] {
      try {
        body(own);
      } catch (const PeerFailed&) {
        const std::lock_guard lock(mutex);
        if (!follow_up) follow_up = std::current_exception();
      } catch (const std::exception& error) {
        own.abort(error.what());
        const std::lock_guard lock(mutex);
        if (!cause) cause = std::current_exception();
      } catch (...) {
        own.abort("unknown exception");
        const std::lock_guard lock(mutex);
        if (!cause) cause = std::current_exception();
      }
    });
  }
  threads.clear();  // joins
  if (cause) std::rethrow_exception(cause);
  if (follow_up) std::rethrow_exception(follow_up);
}

}  // namespace dgc
