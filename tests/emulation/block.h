#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulation/execution.h"
#include "tests/emulation/fiber.h"

// A block of an emulated grid, its warps and its threads, as long as not all of them have returned.
namespace dgc::emulation {

struct Block;

// What a thread waits for. Empty: nothing.
struct Wait {
  Place place{nullptr, {}};
  unsigned mask = 0;
  uint64_t value = 0;
  bool at(const Place& other) const;
};

struct Thread {
  Block* block = nullptr;
  unsigned index = 0;
  std::unique_ptr<Fiber> fiber;  // null: it has not started, or has returned
  Wait wait;
  std::array<uint64_t, 32>* warp_values = nullptr;  // where it waits for what its warp's lanes bring
};

struct Warp {
  Thread* first = nullptr;
  std::array<uint8_t, 32> runnable{};  // the lanes that can run, in any order
  size_t runnable_count = 0;
  size_t priority = 0;
  size_t place = 0;  // in the schedule's list, while some are runnable
};

struct FreeShared {
  void operator()(std::byte* memory) const;
};

struct Block {
  Block(unsigned number, unsigned size, size_t shared_bytes);
  Block(const Block&) = delete;  // its threads know where it is
  Block& operator=(const Block&) = delete;

  unsigned index;
  std::vector<Thread> threads;
  std::array<Warp, 32> warps;
  std::unique_ptr<std::byte, FreeShared> shared;  // null: none
  unsigned waiting = 0;                           // at __syncthreads
  std::array<unsigned, 32> waiting_in_warp{};
  unsigned returned = 0;
};

// "threads wait for each other: 31 of block 0 at __syncthreads (x.cu:12); ..."
std::string who_waits(const std::vector<std::unique_ptr<Block>>& blocks);

}  // namespace dgc::emulation
