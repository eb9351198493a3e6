#pragma once

#include <cstdint>
#include <string>

#include "dist/launch/launch.h"

namespace dgc {

// Checks that the readers of all launchers' variables share.

inline constexpr int64_t kMaxRanks = 1 << 20;

// The number that a variable holds; throws UserError unless it lies in [low, high].
int64_t environment_number(const std::string& variable, const std::string& text, int64_t low, int64_t high);
// The number of a variable that has to be set. because: why, as a message says behind "though".
int64_t required_number(const Environment&, const char* variable, int64_t low, int64_t high, const char* because);

// Throws UserError with the variables' names when the ranks contradict the size.
void check_ranks(const Launch&, const char* rank, const char* size, const char* local_rank);
// The same for the number of this machine's ranks, where the launcher tells it.
void check_local_size(const Launch&, const char* local_rank, const char* local_size, const char* size);

}  // namespace dgc
