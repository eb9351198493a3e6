#include "tests/emulation/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/errors.h"
#include "tests/emulation/fiber.h"

namespace dgc::emulation {
namespace {

constexpr size_t kSharedAlignment = 128;
constexpr size_t kBlocksAtOnce = 4;  // more only where blocks wait for each other

struct Wait {
  Place place{nullptr, {}};
  unsigned mask = 0;
  uint64_t value = 0;
  bool at(const Place& other) const {
    if (place.what == nullptr || place.at.line() != other.at.line()) return false;
    return same(place.what, other.what) && same(place.at.file_name(), other.at.file_name());
  }

 private:
  static bool same(const char* a, const char* b) { return a == b || std::string_view(a) == b; }
};

struct Block;

struct Thread {
  Block* block = nullptr;
  unsigned index = 0;
  std::unique_ptr<Fiber> fiber;
  Wait wait;
  std::array<uint64_t, 32> warp_values{};
};

struct FreeShared {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kSharedAlignment}); }
};

struct Warp {
  std::vector<Thread*> runnable;
  size_t priority = 0;
  size_t place = 0;  // in Grid's list, while some are runnable
};

struct Block {
  unsigned index = 0;
  std::vector<Thread> threads;
  std::array<Warp, 32> warps;
  std::unique_ptr<std::byte, FreeShared> shared;
  unsigned waiting = 0;  // at __syncthreads
  std::array<unsigned, 32> waiting_in_warp{};
  unsigned returned = 0;
};

// Fibers that have nothing to do: most launches are small and there are many.
thread_local std::vector<std::unique_ptr<Fiber>> idle_fibers;

enum class Pace { turns, warps_apart, blocks_apart };

class Grid {
 public:
  Grid(const Launch& launch, size_t shared_bytes, const std::function<void(void*)>& body)
      : launch_(launch), shared_bytes_(shared_bytes), body_(body), random_(launch.seed), order_(launch.grid) {
    std::iota(order_.begin(), order_.end(), 0u);
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[draw(i)]);
    at_once_ = 1 + draw(kBlocksAtOnce);
    pace_ = static_cast<Pace>(draw(3));
  }

  void run() {
    block_size = {launch_.block};
    grid_size = {launch_.grid};
    for (;;) {
      while (started_ < order_.size() && (live_.size() < at_once_ || ready_.empty())) start_block(order_[started_++]);
      if (ready_.empty()) break;
      Thread* const next = take_next();
      run_thread(*next);
      if (error_) std::rethrow_exception(error_);
    }
    if (!live_.empty()) throw EmulationError(who_waits());
  }

  void wait_for_block(const Place& place) {
    Block& block = *now_->block;
    now_->wait.place = place;
    if (++block.waiting == block.threads.size()) {
      for (const Thread& t : block.threads) check_same(t.wait, place);
      block.waiting = 0;
      release(block);
    }
    Fiber::suspend();
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
    Fiber::suspend();
  }

  const std::array<uint64_t, 32>& wait_for_warp(const Place& place, unsigned mask, uint64_t value) {
    Thread& me = *now_;
    std::vector<Thread>& threads = me.block->threads;
    const unsigned first = me.index / 32 * 32;
    if ((mask >> (me.index - first) & 1) == 0) {
      throw EmulationError(fmt::format("{}: lane {} is not in its own mask", place.what, me.index - first));
    }
    if (static_cast<size_t>(std::bit_width(mask)) > threads.size() - first) {
      throw EmulationError(fmt::format("{}: the mask names lanes that the block does not have", place.what));
    }
    me.wait = {place, mask, value};
    const auto in_mask = [&](unsigned lane) { return (mask >> lane & 1) != 0; };
    unsigned& waiting = me.block->waiting_in_warp[first / 32];
    const auto expected = static_cast<unsigned>(std::popcount(mask));
    bool complete = ++waiting >= expected;  // worth a closer look
    std::array<uint64_t, 32> values{};
    for (unsigned lane = 0; complete && lane < 32; ++lane) {
      if (!in_mask(lane)) continue;
      const Wait& wait = threads[first + lane].wait;
      complete = complete && wait.at(place) && wait.mask == mask;
      values[lane] = wait.value;
    }
    if (complete) waiting -= expected;
    for (unsigned lane = 0; complete && lane < 32; ++lane) {
      if (!in_mask(lane)) continue;
      threads[first + lane].warp_values = values;
      release(threads[first + lane]);
    }
    Fiber::suspend();
    return me.warp_values;
  }

  void let_others_run() {
    if (draw(4) != 0) return;
    make_runnable(*now_);
    Fiber::suspend();
  }

 private:
  size_t draw(size_t below) {  // splitmix64
    uint64_t z = random_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<size_t>((z ^ z >> 31) % below);
  }

  void make_runnable(Thread& thread) {
    Warp& warp = thread.block->warps[thread.index / 32];
    warp.runnable.push_back(&thread);
    if (warp.runnable.size() > 1) return;
    warp.place = ready_.size();
    ready_.push_back(&warp);
  }

  Thread* take_next() {
    Warp& warp = *next_warp();
    std::swap(warp.runnable[draw(warp.runnable.size())], warp.runnable.back());
    Thread* const next = warp.runnable.back();
    warp.runnable.pop_back();
    if (warp.runnable.empty()) {
      ready_.back()->place = warp.place;
      std::swap(ready_[warp.place], ready_.back());
      ready_.pop_back();
    }
    return next;
  }

  // Where warps take turns they stay close together, and a missing barrier rarely shows. So in most launches one runs
  // as far ahead as it can, sometimes with all of its block, until the draw puts it behind all others.
  Warp* next_warp() {
    if (pace_ == Pace::turns) return ready_[draw(ready_.size())];
    const bool may_go_on = favourite_ != nullptr && !favourite_->runnable.empty();
    if (may_go_on && draw(512) != 0) return favourite_;
    if (may_go_on) favourite_->priority = 0;
    favourite_ = *std::ranges::max_element(ready_, {}, &Warp::priority);
    return favourite_;
  }

  void start_block(unsigned index) {
    auto block = std::make_unique<Block>();
    block->index = index;
    if (shared_bytes_ > 0) {
      void* memory = ::operator new (shared_bytes_, std::align_val_t{kSharedAlignment});
      std::memset(memory, 0xff, shared_bytes_);
      block->shared.reset(static_cast<std::byte*>(memory));
    }
    const size_t block_priority = pace_ == Pace::blocks_apart ? draw(1 << 20) : 0;
    for (Warp& warp : block->warps) warp.priority = block_priority << 20 | draw(1 << 20);
    block->threads.resize(launch_.block);
    for (unsigned i = 0; i < launch_.block; ++i) {
      Thread& thread = block->threads[i];
      thread.block = block.get();
      thread.index = i;
      make_runnable(thread);
    }
    live_.push_back(std::move(block));
  }

  void run_thread(Thread& thread) {
    if (thread.fiber == nullptr) {
      if (idle_fibers.empty()) idle_fibers.push_back(std::make_unique<Fiber>());
      thread.fiber = std::move(idle_fibers.back());
      idle_fibers.pop_back();
      thread.fiber->start([this, shared = thread.block->shared.get()] {
        try {
          body_(shared);
        } catch (...) {
          error_ = std::current_exception();
        }
      });
    }
    now_ = &thread;
    thread_index = {thread.index};
    block_index = {thread.block->index};
    if (!thread.fiber->resume()) return;
    idle_fibers.push_back(std::move(thread.fiber));
    thread.wait.place.what = "returned";
    Block* const block = thread.block;
    if (++block->returned < block->threads.size()) return;
    favourite_ = nullptr;
    std::erase_if(live_, [&](const auto& b) { return b.get() == block; });
  }

  void release(Thread& thread) {
    thread.wait = {};
    make_runnable(thread);
  }
  void release(Block& block) {
    for (Thread& thread : block.threads) release(thread);
  }

  // Threads that wait for the same barrier in different places of the source are a barrier in divergent code.
  void check_same(const Wait& wait, const Place& place) const {
    if (!wait.at(place)) throw EmulationError(who_waits());
  }

  std::string who_waits() const {
    std::map<std::string, int> groups;
    for (const auto& block : live_) {
      for (const Thread& t : block->threads) {
        const Place& p = t.wait.place;
        const std::string_view file = p.at.file_name();
        const std::string where = p.at.line() == 0 || t.fiber == nullptr
                                      ? std::string(p.what != nullptr ? p.what : "running")
                                      : fmt::format("{} ({}:{})", p.what != nullptr ? p.what : "running",
                                                    file.substr(file.rfind('/') + 1), p.at.line());
        ++groups[fmt::format("of block {} at {}", block->index, where)];
      }
    }
    std::string text = "threads wait for each other:";
    for (const auto& [where, count] : groups) text += fmt::format(" {} {};", count, where);
    return text;
  }

  Launch launch_;
  size_t shared_bytes_;
  const std::function<void(void*)>& body_;
  uint64_t random_;
  std::vector<unsigned> order_;
  size_t at_once_ = 1;
  Pace pace_ = Pace::turns;
  size_t started_ = 0;
  size_t waiting_for_grid_ = 0;
  std::vector<std::unique_ptr<Block>> live_;
  std::vector<Warp*> ready_;  // warps with threads that can run
  Warp* favourite_ = nullptr;
  Thread* now_ = nullptr;
  std::exception_ptr error_;
};

thread_local Grid* running = nullptr;

}  // namespace

void wait_for_block(const Place& place) { running->wait_for_block(place); }
void wait_for_grid(const Place& place) { running->wait_for_grid(place); }
const std::array<uint64_t, 32>& wait_for_warp(const Place& place, unsigned mask, uint64_t value) {
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
