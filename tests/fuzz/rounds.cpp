// Ranks that may be late (train/steps/round_hub.h). The first part of the input is read as a letter. The rest decides
// how many ranks there are, how often all must meet, and then, byte by byte, which rank acts next, how the clock goes
// on, and which arrivals are not finite or ask to stop. In the end all ranks act until all have met.
#include <algorithm>
#include <chrono>

#include "tests/fuzz/input.h"
#include "tests/support/uneven_ranks.h"

using namespace dgc;

namespace {

// A letter that can be read is one that is written so.
void read_any(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto again = to_letter(read_letter(bytes));
    // A bool may be any byte that is not zero.
    fuzz::require(again->size() == size);
  } catch (const InternalError&) {  // what everything else is
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any(data, std::min<size_t>(size, 64));
  fuzz::Input input(data, size);
  const int count = 1 + input.take<uint8_t>() % 6;
  const int64_t rounds_to_meeting = 1 + input.take<uint8_t>() % 16;
  UnevenRanks ranks({.ranks = count, .wait = std::chrono::milliseconds(100), .most_unread = 200}, rounds_to_meeting);
  while (input.left() > 1) {
    const int rank = input.take<uint8_t>() % count;
    const auto how = input.take<uint8_t>();
    ranks.act(rank, std::chrono::milliseconds(how >> 2), {.infinite = (how & 3) == 3, .stop = (how & 3) == 2});
  }
  ranks.meet();
  return 0;
}
