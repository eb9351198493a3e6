#include "tests/ptx/interpreter/races.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/ptx/interpreter/lanes.h"

namespace dgc::ptx {
namespace {

constexpr uint64_t block_of(uint64_t thread) { return thread >> 32; }
constexpr uint64_t index_of(uint64_t thread) { return thread & 0xffffffffu; }

// Shared memory of different blocks is different memory.
uint64_t place(const Warp& warp, const Location& at) {
  if (at.space == Space::global) return at.address;
  return kSharedWindow + (uint64_t{warp.block->index} << 24) + at.address;
}

bool is_watched(const Location& at) { return at.space == Space::global || at.space == Space::shared; }

}  // namespace

Races::ThreadState& Races::state(uint64_t thread) {
  std::vector<ThreadState>& block = blocks_[block_of(thread)];
  if (block.empty()) block.resize(threads_);
  return block[index_of(thread)];
}

bool Races::is_past(const ThreadState& me, uint64_t my_id, const Event& event) const {
  if (event.time == 0 || event.thread == my_id) return true;
  if (me.known == nullptr) return false;
  const auto found = me.known->find(static_cast<unsigned>(block_of(event.thread)));
  return found != me.known->end() && found->second[index_of(event.thread)] >= event.time;
}

void Races::join(Known& to, const Known& from) const {
  if (from == nullptr || from == to) return;
  if (to == nullptr) {
    to = from;
    return;
  }
  auto both = std::make_shared<Clocks>(*to);
  for (const auto& [block, times] : *from) {
    std::vector<uint32_t>& mine = (*both)[block];
    mine.resize(threads_);
    for (size_t i = 0; i < times.size(); ++i) mine[i] = std::max(mine[i], times[i]);
  }
  to = both;
}

Races::Known Races::with_own(uint64_t thread, const ThreadState& thread_state) const {
  auto clocks =
      thread_state.known == nullptr ? std::make_shared<Clocks>() : std::make_shared<Clocks>(*thread_state.known);
  std::vector<uint32_t>& mine = (*clocks)[static_cast<unsigned>(block_of(thread))];
  mine.resize(threads_);
  mine[index_of(thread)] = thread_state.now;
  return clocks;
}

Races::ByteState& Races::byte(const Warp& warp, const Location& at, size_t offset) {
  const uint64_t where = place(warp, at) + offset;
  std::unique_ptr<Line>& line = lines_[where / 64];
  if (line == nullptr) line = std::make_unique<Line>();
  return (*line)[where % 64];
}

void Races::note(const Instruction& one, uint64_t thread, const Instruction& other, uint64_t other_thread,
                 const char* what) {
  if (found_.size() >= 20) return;  // enough to see what is wrong
  for (const std::string& known : found_) {
    if (known.starts_with(fmt::format("line {} '{}' and line {} ", one.line, one.text, other.line))) return;
  }
  found_.insert(fmt::format("line {} '{}' and line {} '{}' {}: thread {} of block {} and thread {} of block {}",
                            one.line, one.text, other.line, other.text, what, index_of(thread), block_of(thread),
                            index_of(other_thread), block_of(other_thread)));
}

void Races::load(const Warp& warp, const Instruction& i, unsigned lane, const Location& at, size_t bytes) {
  if (!is_watched(at)) return;
  const uint64_t me = id(warp, lane);
  ThreadState& mine = state(me);
  if (i.order.strong) {
    if (const auto found = locations_.find(place(warp, at)); found != locations_.end()) {
      join(i.order.acquire ? mine.known : mine.pending, found->second);
    }
  }
  for (size_t k = 0; k < bytes; ++k) {
    ByteState& b = byte(warp, at, k);
    if (!is_past(mine, me, b.write) && !(i.order.strong && b.write.strong)) {
      note(i, me, *b.write.instruction, b.write.thread, "read and write");
    }
    std::erase_if(b.reads, [&](const Event& read) { return is_past(mine, me, read); });
    b.reads.push_back({me, mine.now, &i, i.order.strong, 0, {}});
  }
}

void Races::check_write(const Warp& warp, const Instruction& i, uint64_t me, const Location& at, size_t bytes,
                        bool strong) {
  const ThreadState& mine = state(me);
  for (size_t k = 0; k < bytes; ++k) {
    ByteState& b = byte(warp, at, k);
    const std::byte value = at.memory[k];
    // Lanes of one instruction may all write the same.
    const bool same = b.write.serial == serial_ && b.write.instruction == &i && b.write.value == value && !strong;
    if (!same && !is_past(mine, me, b.write) && !(strong && b.write.strong)) {
      note(i, me, *b.write.instruction, b.write.thread, "both write");
    }
    for (const Event& read : b.reads) {
      if (!is_past(mine, me, read) && !(strong && read.strong))
        note(i, me, *read.instruction, read.thread, "write and read");
    }
    b.reads.clear();
    b.write = {me, mine.now, &i, strong, serial_, value};
  }
}

void Races::store(const Warp& warp, const Instruction& i, unsigned lane, const Location& at, size_t bytes) {
  if (!is_watched(at)) return;
  const uint64_t me = id(warp, lane);
  check_write(warp, i, me, at, bytes, i.order.strong);
  ThreadState& mine = state(me);
  Known& location = locations_[place(warp, at)];
  location = i.order.release ? with_own(me, mine) : i.order.strong ? mine.released : nullptr;
  if (location == nullptr) locations_.erase(place(warp, at));
  if (i.order.release) ++mine.now;
}

void Races::atomic(const Warp& warp, const Instruction& i, unsigned lane, const Location& at, size_t bytes) {
  if (!is_watched(at)) return;
  const uint64_t me = id(warp, lane);
  ThreadState& mine = state(me);
  Known& location = locations_[place(warp, at)];
  if (location != nullptr) join(i.order.acquire ? mine.known : mine.pending, location);
  check_write(warp, i, me, at, bytes, true);
  join(location, i.order.release ? with_own(me, mine) : mine.released);
  if (i.order.release) ++mine.now;
}

void Races::fence(const Warp& warp, Lanes lanes) {
  for_lanes(lanes, [&](unsigned lane) {
    const uint64_t me = id(warp, lane);
    ThreadState& mine = state(me);
    join(mine.known, mine.pending);
    mine.pending = nullptr;
    mine.released = with_own(me, mine);
    ++mine.now;
  });
}

void Races::synchronize(const std::vector<uint64_t>& threads, bool fences_too) {
  Known known, released, pending;
  for (const uint64_t thread : threads) {
    const ThreadState& s = state(thread);
    join(known, s.known);
    if (!fences_too) continue;
    join(released, s.released);
    join(pending, s.pending);
  }
  auto all = known == nullptr ? std::make_shared<Clocks>() : std::make_shared<Clocks>(*known);
  for (const uint64_t thread : threads) {
    std::vector<uint32_t>& times = (*all)[static_cast<unsigned>(block_of(thread))];
    times.resize(threads_);
    times[index_of(thread)] = state(thread).now;
  }
  for (const uint64_t thread : threads) {
    ThreadState& s = state(thread);
    s.known = all;
    ++s.now;
    if (!fences_too) continue;
    s.released = released;
    s.pending = pending;
  }
}

void Races::warp_barrier(const Warp& warp, Lanes lanes) {
  std::vector<uint64_t> threads;
  for_lanes(lanes, [&](unsigned lane) { threads.push_back(id(warp, lane)); });
  synchronize(threads, false);
}

void Races::block_barrier(const Block& block) {
  std::vector<uint64_t> threads;
  for (unsigned i = 0; i < threads_; ++i) threads.push_back(uint64_t{block.index} << 32 | i);
  synchronize(threads, fences_ == Fences::as_on_gpus);
}

}  // namespace dgc::ptx
