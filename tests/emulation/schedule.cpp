#include "tests/emulation/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dgc::emulation {
namespace {

constexpr size_t kBlocksAtOnce = 4;  // more only where blocks wait for each other

}  // namespace

Schedule::Schedule(unsigned blocks, uint64_t seed) : random_(seed), order_(blocks) {
  std::iota(order_.begin(), order_.end(), 0u);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[draw(i)]);
  at_once_ = 1 + draw(kBlocksAtOnce);
  pace_ = static_cast<Pace>(draw(3));
}

std::optional<unsigned> Schedule::next_block(size_t live) {
  if (started_ == order_.size() || (live >= at_once_ && !ready_.empty())) return {};
  return order_[started_++];
}

void Schedule::start(Block& block) {
  const size_t block_priority = pace_ == Pace::blocks_apart ? draw(1 << 20) : 0;
  for (Warp& warp : block.warps) warp.priority = block_priority << 20 | draw(1 << 20);
  for (Thread& thread : block.threads) make_runnable(thread);
}

void Schedule::end() { favourite_ = nullptr; }

void Schedule::make_runnable(Thread& thread) {
  Warp& warp = thread.block->warps[thread.index / 32];
  warp.runnable.push_back(&thread);
  if (warp.runnable.size() > 1) return;
  warp.place = ready_.size();
  ready_.push_back(&warp);
}

Thread& Schedule::take_next() {
  Warp& warp = next_warp();
  std::swap(warp.runnable[draw(warp.runnable.size())], warp.runnable.back());
  Thread& next = *warp.runnable.back();
  warp.runnable.pop_back();
  if (warp.runnable.empty()) {
    ready_.back()->place = warp.place;
    std::swap(ready_[warp.place], ready_.back());
    ready_.pop_back();
  }
  return next;
}

bool Schedule::interrupts() { return draw(4) == 0; }

size_t Schedule::draw(size_t below) {  // splitmix64
  uint64_t z = random_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<size_t>((z ^ z >> 31) % below);
}

// Where warps take turns they stay close together, and a missing barrier rarely shows. So in most launches one runs
// as far ahead as it can, sometimes with all of its block, until the draw puts it behind all others.
Warp& Schedule::next_warp() {
  if (pace_ == Pace::turns) return *ready_[draw(ready_.size())];
  const bool may_go_on = favourite_ != nullptr && !favourite_->runnable.empty();
  if (may_go_on && draw(512) != 0) return *favourite_;
  if (may_go_on) favourite_->priority = 0;
  favourite_ = *std::ranges::max_element(ready_, {}, &Warp::priority);
  return *favourite_;
}

}  // namespace dgc::emulation
