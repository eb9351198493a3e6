#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <string>

// What ranks tell each other beside the data (mpi.cpp), as it lies in memory.
namespace dgc {

// What a rank does: at any time all ranks that it does it with the same.
struct Call {
  enum class Kind : uint32_t { all_gather, gather_shards, barrier } kind;
  uint32_t ranks = 0;
  uint64_t workers = 0;   // of one rank
  uint64_t size = 0;      // bytes of a part, or elements of each worker
  uint64_t sequence = 0;  // calls before this one
  bool operator==(const Call&) const = default;

  std::string text() const {
    constexpr std::array kNames = {"all_gather", "gather_shards", "barrier"};
    return fmt::format("call {}, {} of {} {} and {} workers among {} ranks", sequence,
                       kNames.at(static_cast<size_t>(kind)), size, kind == Kind::all_gather ? "bytes" : "elements",
                       workers, ranks);
  }
};
static_assert(sizeof(Call) == 32);

// What a rank that cannot go on tells the others.
struct Notice {
  std::array<char, 1024> reason{};
};

}  // namespace dgc
