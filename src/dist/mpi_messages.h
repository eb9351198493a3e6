#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <string>

// Messages that ranks exchange beside the data (mpi.cpp), sent as they lie in memory.
namespace dgc {

// The call that a rank makes. All ranks of a collective must make equal calls.
struct Call {
  enum class Kind : uint32_t { all_gather, gather_shards, barrier } kind;
  uint32_t ranks = 0;
  uint64_t workers = 0;   // workers of one rank
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
