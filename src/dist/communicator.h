#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace dgc {

// Thrown out of a collective when another rank has failed; says which and why. The cause is reported by that rank.
struct PeerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How the ranks of a run talk. One object per rank, used by one thread. Every call but rank(), size() and abort() is a
// collective: all ranks make the same calls in the same order with the same sizes, and it returns when the result is
// there. Throws PeerFailed as soon as any rank has called abort().
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;  // "single", "threads"
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // all = the ranks' parts in rank order; every part has the size of `mine`. `mine` must not lie inside `all`.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  // out[i] = sum of x[i] over the workers of all ranks, added one after another in worker order (rank 0's workers
  // first): the same bits however the workers are spread over ranks. Every rank brings at least one worker and as many
  // as the others. `out` must not overlap the inputs.
  virtual void all_reduce_ordered(std::span<const float* const> local_workers, float* out, size_t n) = 0;

  virtual void barrier() = 0;

  // This rank cannot go on: every collective of the others throws from now on. The first reason wins.
  virtual void abort(const std::string& reason) noexcept = 0;
};

std::unique_ptr<Communicator> make_single_communicator();

// Ranks that are threads of this process, [i] for rank i.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks);

// Runs `body` once per communicator, each in a thread of its own, and joins them all. When one throws, the others are
// aborted, and the exception of the rank that failed first leaves this function.
void run_ranks(std::span<const std::unique_ptr<Communicator>> communicators,
               const std::function<void(Communicator&)>& body);

}  // namespace dgc
