#include "tests/emulation/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dgc::emulation {
namespace {

constexpr size_t kBlocksAtOnce = 4;  // more only where blocks wait for each other

// One of `below` numbers, without the division that a remainder takes: threads switch all the time.
size_t scaled(uint32_t bits, size_t below) { return static_cast<size_t>(uint64_t{bits} * below >> 32); }

}  // namespace

Schedule::Schedule(unsigned blocks, uint64_t seed) : random_(seed), order_(blocks) {
  std::iota(order_.begin(), order_.end(), 0u);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[draw(i)]);
  at_once_ = 1 + draw(kBlocksAtOnce);
  pace_ = static_cast<Pace>(draw(3));
}

std::optional<unsigned> Schedule::next_block(size_t live) {
  if (!wants_block(live)) return {};
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
  warp.runnable[warp.runnable_count++] = static_cast<uint8_t>(thread.index % 32);
  if (warp.runnable_count > 1) return;
  warp.place = ready_.size();
  ready_.push_back(&warp);
}

Thread& Schedule::take_next() {
  const uint64_t bits = draw_bits();
  Warp& warp = next_warp(static_cast<uint32_t>(bits));
  uint8_t& drawn = warp.runnable[scaled(static_cast<uint32_t>(bits >> 32), warp.runnable_count)];
  Thread& next = warp.first[drawn];
  drawn = warp.runnable[--warp.runnable_count];
  if (warp.runnable_count == 0) {
    ready_.back()->place = warp.place;
    std::swap(ready_[warp.place], ready_.back());
    ready_.pop_back();
  }
  return next;
}

bool Schedule::interrupts() { return draw(4) == 0; }

uint64_t Schedule::draw_bits() {  // splitmix64
  uint64_t z = random_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

size_t Schedule::draw(size_t below) { return scaled(static_cast<uint32_t>(draw_bits()), below); }

// Where warps take turns they stay close together, and a missing barrier rarely shows. So in most launches one runs
// as far ahead as it can, sometimes with all of its block, until the draw puts it behind all others.
Warp& Schedule::next_warp(uint32_t bits) {
  if (pace_ == Pace::turns) return *ready_[scaled(bits, ready_.size())];
  const bool may_go_on = favourite_ != nullptr && favourite_->runnable_count > 0;
  if (may_go_on && scaled(bits, 512) != 0) return *favourite_;
  if (may_go_on) favourite_->priority = 0;
  favourite_ = *std::ranges::max_element(ready_, {}, &Warp::priority);
  return *favourite_;
}

}  // namespace dgc::emulation
