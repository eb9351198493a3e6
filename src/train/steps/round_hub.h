#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "train/steps/round_letters.h"

namespace dgc {

// Decides who takes part in the exchange behind each round, where ranks may be late (exchange.wait). Rank 0 has one,
// and all ranks, rank 0 too, write to it. It tells every rank the same in the same order, so that a rank that lags
// behind has the same weights once it has read all.
//
// A round ends in two phases. In the first the hub waits for arrivals, and then says in a RollCall who is present. The
// present ranks send their messages. In the second phase the hub waits for these, and then delivers those that have
// come, which may be none, to all ranks. Messages that come later are delivered by themselves, as soon as no second
// phase is under way. A rank is behind from its arrival until its messages are delivered.
//
// A phase is over when half of the ranks are there, and `wait` has passed since then or nothing is missing. The first
// phase does not wait for ranks that missed the exchange before, too, as these might hold up every round by `wait`. In
// the second phase ranks that wait for its end count as there, beside those whose messages have come. So ranks that
// stand still do not hold up the others while more than half of all move.
//
// Where exactly half of the ranks move, they may all be ones that the round has not counted. Then the round ends
// without messages. If no rank is left that is not behind and could begin a round, the next RollCall names the last
// round's step again, and no steps.
//
// A phase waits for all, however long that takes, where an Arrival says so, where a rank was asked to stop, or where a
// rank has more than `most_unread` bytes of letters left to read.
class RoundHub {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    int ranks = 1;
    std::chrono::duration<double> wait{};
    size_t most_unread = 0;
  };
  using Send = std::function<void(int rank, const Mail::Letter&)>;
  using Unread = std::function<size_t(int rank)>;

  RoundHub(const Options&, Send, Unread);

  void receive(int rank, RoundLetter);      // an Arrival or Messages of that rank
  void look_around(Clock::time_point now);  // ends the phases that are over

 private:
  // Every rank goes from one of these states to the next, or from `present` to `away` where its messages come in time
  // or the round is skipped.
  enum class Place { away, arrived, present, late };
  struct Guest {
    Place place = Place::away;  // present: counted, its messages under way. late: the round went on without these
    Arrival arrival;
    std::optional<Messages> messages;
    int64_t step = 0;         // that `messages` are for
    bool was_absent = false;  // it was missing when the last phase ended that waited for it
  };
  // What a phase waits for, in ranks.
  struct Phase {
    int64_t there = 0;
    int64_t missing = 0;  // of those that are waited for
    int64_t all = 0;
    bool everyone = false;  // however long that takes
  };

  // Each ends one of the phases if that is over, and returns whether it was.
  bool ends_arrivals(Clock::time_point now);
  bool ends_round(Clock::time_point now);
  bool is_over(const Phase&, Clock::time_point now);
  bool waits_for_all() const;
  bool is_in_time(const Guest&) const;  // at the end of a round that has not ended yet
  void call_roll(bool everyone);
  void deliver_late();
  void deliver();
  void send_all(const RoundLetter&);

  Options options_;
  Send send_;
  Unread unread_;
  std::vector<Guest> guests_;               // by rank
  std::optional<RollCall> round_;           // set in the second phase
  int64_t last_step_ = -1;                  // of the last round that has ended
  std::optional<Clock::time_point> since_;  // when half of what the phase waits for was there
};

}  // namespace dgc
