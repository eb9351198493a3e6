#include "tests/emulation/emulate.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <exception>
#include <memory>
#include <vector>

#include "tensor/errors.h"
#include "tests/emulation/block.h"
#include "tests/emulation/fiber.h"
#include "tests/emulation/schedule.h"

namespace dgc::emulation {
namespace {

// Fibers that have nothing to do: most launches are small and there are many.
thread_local std::vector<std::unique_ptr<Fiber>> idle_fibers;

// The threads of a launch, and what they wait for.
class Grid {
 public:
  Grid(const Launch& launch, size_t shared_bytes, const std::function<void(void*)>& body)
      : launch_(launch), shared_bytes_(shared_bytes), body_(body), schedule_(launch.grid, launch.seed) {}

  void run() {
    blockDim = {launch_.block};
    gridDim = {launch_.grid};
    for (;;) {
      while (const auto index = schedule_.next_block(live_.size())) start_block(*index);
      if (now_ == nullptr && schedule_.empty()) break;
      if (now_ == nullptr) make_current(schedule_.take_next());
      run_fiber();
      if (error_) std::rethrow_exception(error_);
    }
    if (!live_.empty()) throw EmulationError(who_waits(live_));
  }

  void wait_for_block(const Place& place) {
    Block& block = *now_->block;
    now_->wait.place = place;
    if (++block.waiting == block.threads.size()) {
      for (const Thread& t : block.threads) check_same(t.wait, place);
      block.waiting = 0;
      release(block);
    }
    give_way();
  }

  void wait_for_grid(const Place& place) {
    now_->wait.place = place;
    if (++waiting_for_grid_ == size_t{launch_.grid} * launch_.block) {
      for (const auto& block : live_) {
        for (const Thread& t : block->threads) check_same(t.wait, place);
      }
      waiting_for_grid_ = 0;
      for (const auto& block : live_) release(*block);
    }
    give_way();
  }

  std::array<uint64_t, 32> wait_for_warp(const Place& place, unsigned mask, uint64_t value) {
    Thread& me = *now_;
    std::vector<Thread>& threads = me.block->threads;
    const unsigned first = me.index / 32 * 32;
    if ((mask >> (me.index - first) & 1) == 0) {
      throw EmulationError(fmt::format("{}: lane {} is not in its own mask", place.what, me.index - first));
    }
    if (static_cast<size_t>(std::bit_width(mask)) > threads.size() - first) {
      throw EmulationError(fmt::format("{}: the mask names lanes that the block does not have", place.what));
    }
    std::array<uint64_t, 32> values;  // which the lane that comes last sets
    me.wait = {place, mask, value};
    me.warp_values = &values;
    const auto in_mask = [&](unsigned lane) { return (mask >> lane & 1) != 0; };
    unsigned& waiting = me.block->waiting_in_warp[first / 32];
    const auto expected = static_cast<unsigned>(std::popcount(mask));
    bool complete = ++waiting >= expected;  // worth a closer look
    if (complete) values.fill(0);
    for (unsigned lane = 0; complete && lane < 32; ++lane) {
      if (!in_mask(lane)) continue;
      const Wait& wait = threads[first + lane].wait;
      complete = complete && wait.at(place) && wait.mask == mask;
      values[lane] = wait.value;
    }
    if (complete) waiting -= expected;
    for (unsigned lane = 0; complete && lane < 32; ++lane) {
      if (!in_mask(lane)) continue;
      *threads[first + lane].warp_values = values;
      release(threads[first + lane]);
    }
    give_way();
    return values;
  }

  void let_others_run() {
    if (!schedule_.interrupts()) return;
    schedule_.make_runnable(*now_);
    give_way();
  }

 private:
  void start_block(unsigned index) {
    live_.push_back(std::make_unique<Block>(index, launch_.block, shared_bytes_));
    schedule_.start(*live_.back());
  }

  void make_current(Thread& thread) {
    now_ = &thread;
    threadIdx = {thread.index};
    blockIdx = {thread.block->index};
  }

  // Runs the current thread, and those after it, until all wait or a block is to start.
  void run_fiber() {
    begin(*now_);
    now_->fiber->resume();
    if (free_ != nullptr) idle_fibers.push_back(std::move(free_));
  }

  // Gives a thread that has not started a fiber that will run it.
  void begin(Thread& thread) {
    if (thread.fiber != nullptr) return;
    if (idle_fibers.empty()) idle_fibers.push_back(std::make_unique<Fiber>());
    thread.fiber = std::move(idle_fibers.back());
    idle_fibers.pop_back();
    thread.fiber->start([this] { run_threads(); });
  }

  // Called by the thread that runs and waits: straight to the one that comes next, as most of the emulation's time goes
  // into these switches.
  void give_way() {
    if (schedule_.empty() || schedule_.wants_block(live_.size())) {
      now_ = nullptr;
      Fiber::suspend();
      return;
    }
    const Thread* const me = now_;
    make_current(schedule_.take_next());
    if (now_ == me) return;
    begin(*now_);
    Fiber::hand_over(*now_->fiber);
  }

  // On a fiber: the current thread, and as long as the thread that comes next has not started, that one too.
  void run_threads() {
    for (;;) {
      try {
        body_(now_->block->shared.get());
      } catch (...) {
        error_ = std::current_exception();
      }
      free_ = std::move(now_->fiber);
      end(*now_);
      now_ = nullptr;
      if (error_ || schedule_.empty() || schedule_.wants_block(live_.size())) return;
      make_current(schedule_.take_next());
      if (now_->fiber != nullptr) return;
      now_->fiber = std::move(free_);
    }
  }

  void end(Thread& thread) {
    thread.wait.place.what = "returned";
    Block* const block = thread.block;
    if (++block->returned < block->threads.size()) return;
    schedule_.end();
    std::erase_if(live_, [&](const auto& b) { return b.get() == block; });
  }

  void release(Thread& thread) {
    thread.wait = {};
    schedule_.make_runnable(thread);
  }
  void release(Block& block) {
    for (Thread& thread : block.threads) release(thread);
  }

  // Threads that wait for the same barrier in different places of the source are a barrier in divergent code.
  void check_same(const Wait& wait, const Place& place) const {
    if (!wait.at(place)) throw EmulationError(who_waits(live_));
  }

  Launch launch_;
  size_t shared_bytes_;
  const std::function<void(void*)>& body_;
  Schedule schedule_;
  size_t waiting_for_grid_ = 0;
  std::vector<std::unique_ptr<Block>> live_;
  Thread* now_ = nullptr;        // the current thread; null: none has been chosen
  std::unique_ptr<Fiber> free_;  // of threads that have all returned, until it has been left
  std::exception_ptr error_;
};

thread_local Grid* running = nullptr;

}  // namespace

void wait_for_block(const Place& place) { running->wait_for_block(place); }
void wait_for_grid(const Place& place) { running->wait_for_grid(place); }
std::array<uint64_t, 32> wait_for_warp(const Place& place, unsigned mask, uint64_t value) {
  return running->wait_for_warp(place, mask, value);
}
void let_others_run() { running->let_others_run(); }

void emulate_with(const Launch& launch, size_t shared_bytes, const std::function<void(void*)>& body) {
  DGC_CHECK(running == nullptr, "a kernel cannot launch another");
  DGC_CHECK(launch.grid >= 1, "a grid has blocks");
  DGC_CHECK(launch.block >= 1 && launch.block <= 1024, "a block has 1 to 1024 threads");
  struct Reset {
    ~Reset() { running = nullptr; }
  } reset;
  Grid grid(launch, shared_bytes, body);
  running = &grid;
  grid.run();
}

}  // namespace dgc::emulation
