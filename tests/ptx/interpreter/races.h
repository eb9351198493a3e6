#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/ptx/interpreter/machine.h"
#include "tests/ptx/interpreter/memory.h"

namespace dgc::ptx {

// How much a fence before a barrier does for the other threads of the block. By the letter of PTX's memory model it
// makes only its own thread's release: if thread 0 is to release what the block wrote, its fence must follow the
// barrier. On GPUs a fence of any thread, followed by a barrier, is enough.
enum class Fences { by_the_letter, as_on_gpus };

// Looks for data races in a launch: two accesses to the same byte of shared or global memory by two threads, of which
// one writes and one is not atomic (nor volatile or relaxed), and which nothing orders. What orders: barriers of a
// block, of a warp (bar.warp.sync; shuffles and votes do not), and what is released and then acquired, by the
// instruction itself or by a fence and a relaxed one. Every thread has a clock, and knows of other threads up to which
// time they are past.
class Races {
 public:
  Races(unsigned threads_of_a_block, Fences fences) : threads_(threads_of_a_block), fences_(fences) {}

  void begin_instruction() { ++serial_; }
  void load(const Warp&, const Instruction&, unsigned lane, const Location&, size_t bytes);
  void store(const Warp&, const Instruction&, unsigned lane, const Location&, size_t bytes);  // the bytes are there
  void atomic(const Warp&, const Instruction&, unsigned lane, const Location&, size_t bytes);
  void fence(const Warp&, Lanes lanes);
  void warp_barrier(const Warp&, Lanes lanes);
  void block_barrier(const Block&);

  const std::set<std::string>& found() const { return found_; }  // one sentence for each pair of instructions

 private:
  // For threads of some blocks, the time up to which they are past. A block that is not there is not known at all.
  using Clocks = std::map<unsigned, std::vector<uint32_t>>;
  using Known = std::shared_ptr<const Clocks>;

  struct ThreadState {
    uint32_t now = 1;
    Known known, released, pending;  // released: what the last fence covers. pending: what the next one makes known
  };
  struct Event {
    uint64_t thread = 0;
    uint32_t time = 0;  // 0: there is none
    uint32_t at = 0;    // index of the instruction
    bool strong = false;
  };
  struct ByteState {
    Event write;
    uint32_t write_serial = 0;
    std::byte value{};
    uint8_t oldest_read = 0;
    std::array<Event, 2> reads;
  };
  // Accesses are aligned to their size, which is at most 16 bytes: each lies in one line.
  using Line = std::array<ByteState, 16>;

  uint64_t id(const Warp& warp, unsigned lane) const {
    return uint64_t{warp.block->index} << 32 | (warp.first_thread + lane);
  }
  ThreadState& state(uint64_t thread);
  bool is_past(const ThreadState& me, uint64_t my_id, const Event& event) const;
  Known with_own(uint64_t thread, const ThreadState& thread_state) const;
  void join(Known& to, const Known& from) const;
  ByteState* bytes_at(const Warp& warp, const Location& at);
  void check_write(const Warp&, const Instruction&, uint64_t me, const Location&, size_t bytes, bool strong);
  void note(const Warp& warp, const Instruction& one, uint64_t thread, const Event& other, const char* what);
  void synchronize(const std::vector<uint64_t>& threads, bool fences_too);

  unsigned threads_;
  Fences fences_;
  uint32_t serial_ = 0;  // of the instruction that is executed
  std::unordered_map<uint64_t, std::vector<ThreadState>> blocks_;
  std::unordered_map<uint64_t, std::unique_ptr<Line>> lines_;
  std::unordered_map<uint64_t, Known> locations_;  // what was released there
  std::set<std::string> found_;
};

}  // namespace dgc::ptx
