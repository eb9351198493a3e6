#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "dist/mail.h"
#include "kernels/backend.h"

// What ranks and the RoundHub write to each other (exchange.wait). Steps are counted from 0, and that of a round is its
// last one. All ranks of a run have the same program and number formats, so numbers travel as they lie in memory.
namespace dgc {

// A rank is at the end of its round.
struct Arrival {
  int64_t step = 0;
  int64_t steps = 0;      // of the round
  bool everyone = false;  // all ranks must take part in the exchange of this step
  std::vector<WorkerShare> shares{};
};

// A rank's workers' messages, one after the other, once a RollCall has counted that rank among the present ones.
struct Messages {
  std::vector<std::byte> bytes{};
};

// Who was present when a round ended, and whether all of them skip it.
struct RollCall {
  int64_t step = 0;
  int64_t steps = 0;      // 0: the round of that step has ended, and this one is of ranks that were not in it
  bool everyone = false;  // all ranks take part
  bool skipped = false;   // a share is not finite; nothing more comes of this round
  // The steps that all workers of `ranks` took in their rounds, added up. A late rank's round may have had another
  // number of steps.
  int64_t worker_steps = 0;
  std::vector<int32_t> ranks{};
  std::vector<WorkerShare> shares{};  // of these ranks' workers
};

// Messages for all ranks to apply.
struct Delivery {
  int64_t step = 0;              // the one that the messages were made for
  bool late = false;             // they were too late for the delivery that ended their round
  std::vector<int32_t> ranks{};  // whose messages these are
  std::vector<std::byte> messages{};
};

using RoundLetter = std::variant<Arrival, Messages, RollCall, Delivery>;

Mail::Letter to_letter(const RoundLetter&);
// Throws InternalError for bytes that are no whole letter.
RoundLetter read_letter(std::span<const std::byte>);

}  // namespace dgc
