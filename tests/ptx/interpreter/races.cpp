#include "tests/ptx/interpreter/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

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

uint32_t index_of_instruction(const Warp& warp, const Instruction& i) {
  return static_cast<uint32_t>(&i - warp.block->grid->kernel->code.data());
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
  const bool nothing_new = std::ranges::all_of(*from, [&](const auto& entry) {
    const auto found = to->find(entry.first);
    return found != to->end() && std::ranges::equal(entry.second, found->second, std::less_equal<>());
  });
  if (nothing_new) return;  // as each time that a thread which spins looks
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

Races::ByteState* Races::bytes_at(const Warp& warp, const Location& at) {
  const uint64_t where = place(warp, at);
  constexpr size_t kBytes = std::tuple_size_v<Line>;
  std::unique_ptr<Line>& line = lines_[where / kBytes];
  if (line == nullptr) line = std::make_unique<Line>();
  return line->data() + where % kBytes;
}

void Races::note(const Warp& warp, const Instruction& one, uint64_t thread, const Event& other, const char* what) {
  constexpr size_t kMost = 20;  // enough to see what is wrong
  const Instruction& before = warp.block->grid->kernel->code[other.at];
  const std::string lines =
      fmt::format("line {} '{}' and line {} '{}' {}", one.line, one.text, before.line, before.text, what);
  const auto known = found_.lower_bound(lines);
  if (found_.size() >= kMost || (known != found_.end() && known->starts_with(lines))) return;
  found_.insert(fmt::format("{}: thread {} of block {} and thread {} of block {}", lines, index_of(thread),
                            block_of(thread), index_of(other.thread), block_of(other.thread)));
}

void Races::load(const Warp& warp, const Instruction& i, unsigned lane, const Location& at, size_t bytes) {
  if (!is_watched(at)) return;
  const uint64_t me = id(warp, lane);
  ThreadState& mine = state(me);
  const bool strong = i.order.strong;
  if (strong) {
    if (const auto found = locations_.find(place(warp, at)); found != locations_.end()) {
      join(i.order.acquire ? mine.known : mine.pending, found->second);
    }
  }
  const Event now{me, mine.now, index_of_instruction(warp, i), strong};
  ByteState* const states = bytes_at(warp, at);
  for (size_t k = 0; k < bytes; ++k) {
    ByteState& b = states[k];
    if (!(strong && b.write.strong) && !is_past(mine, me, b.write)) note(warp, i, me, b.write, "read and write");
    const auto free = std::ranges::find_if(
        b.reads, [&](const Event& read) { return read.time == 0 || read.thread / kWarpSize == me / kWarpSize; });
    if (free != b.reads.end()) {
      *free = now;
    } else {
      b.reads[b.oldest_read] = now;
      b.oldest_read = static_cast<uint8_t>((b.oldest_read + 1) % b.reads.size());
    }
  }
}

void Races::check_write(const Warp& warp, const Instruction& i, uint64_t me, const Location& at, size_t bytes,
                        bool strong) {
  const ThreadState& mine = state(me);
  const Event now{me, mine.now, index_of_instruction(warp, i), strong};
  ByteState* const states = bytes_at(warp, at);
  for (size_t k = 0; k < bytes; ++k) {
    ByteState& b = states[k];
    const std::byte value = at.memory[k];
    // Lanes of one instruction may all write the same.
    const bool same = b.write_serial == serial_ && b.write.at == now.at && b.value == value && !strong;
    if (!same && !(strong && b.write.strong) && !is_past(mine, me, b.write)) note(warp, i, me, b.write, "both write");
    for (const Event& read : b.reads) {
      if (!(strong && read.strong) && !is_past(mine, me, read)) note(warp, i, me, read, "write and read");
    }
    b = {.write = now, .write_serial = serial_, .value = value, .oldest_read = 0, .reads = {}};
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
