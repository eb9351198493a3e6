#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "train/steps/round_hub.h"

namespace dgc {

// A hub, its clock, and ranks that write to it and read from it as UnevenSteps does, in any order, by rounds of kSteps
// steps. Throws std::logic_error at the first letter that breaks what RoundHub promises.
class UnevenRanks {
 public:
  static constexpr int64_t kSteps = 4;

  // What a rank says at the end of its round.
  struct Says {
    bool infinite = false;  // its gradient is not finite
    bool stop = false;      // it was asked to stop
  };

  // All ranks must meet at the end of every `rounds_to_meeting`th round.
  UnevenRanks(const RoundHub::Options& options,
              int64_t rounds_to_meeting = std::numeric_limits<int64_t>::max() / kSteps)
      : rounds_(rounds_to_meeting),
        ranks_(static_cast<size_t>(options.ranks)),
        hub_(
            options,
            [this](int rank, const Mail::Letter& letter) {
              of(rank).unread.push_back(letter);
              of(rank).unread_bytes += letter->size();
            },
            [this](int rank) { return of(rank).unread_bytes; }) {}

  // Time passes, and then a rank sends what it owes, or comes to the end of a round, or reads until it can do so.
  void act(int rank, RoundHub::Clock::duration time, const Says& says) {
    now_ += time;
    Rank& r = of(rank);
    if (r.owes) {
      send(rank);
    } else if (!r.arrived) {
      arrive(rank, says);
    } else {
      while (r.arrived && !r.owes && !r.unread.empty()) read(rank);
    }
    hub_.look_around(now_);
  }

  void pass(RoundHub::Clock::duration time) {
    now_ += time;
    hub_.look_around(now_);
  }

  // The last step of any rank's round.
  int64_t last_step() const { return std::ranges::max_element(ranks_, {}, &Rank::step)->step; }

  // Lets all ranks come to the end of the same round, where all must meet. Then all have been told of the same messages
  // in the same order, and of each that was sent exactly once.
  void meet() {
    meeting_ = last_step();
    while (std::ranges::any_of(ranks_, [&](const Rank& r) { return r.arrived && r.step == meeting_; }) ||
           !must_meet(meeting_)) {
      meeting_ += kSteps;
    }
    const auto there = [&](const Rank& r) { return !r.arrived && r.step == meeting_ + kSteps; };
    for (int turn = 0; !std::ranges::all_of(ranks_, there); ++turn) {
      require(turn < 10'000, "no rank waits for ever");
      for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
        if (!there(of(rank))) act(rank, std::chrono::milliseconds(63), {});
      }
    }
    for (const Rank& r : ranks_) require(r.applied == ranks_.front().applied, "all apply the same in the same order");
    std::map<Sent, int> times;
    for (const Sent& sent : ranks_.front().applied) ++times[sent];
    require(times.size() == sent_.size(), "nothing is delivered that was not sent");
    for (const Sent& sent : sent_) require(times[sent] == 1, "each message is delivered once");
  }

  // How many rounds have ended without messages, and how many were of no steps.
  int64_t empty() const { return empty_; }
  int64_t without_steps() const { return without_steps_; }

 private:
  struct Sent {
    int64_t step = 0, rank = 0;
    auto operator<=>(const Sent&) const = default;
  };
  struct Rank {
    int64_t step = kSteps - 1;  // of the round that it is in
    int64_t told = -1;          // the step that the last RollCall named
    bool arrived = false, included = false, owes = false;
    int64_t sends = 0;  // the step that it owes its messages of
    int64_t steps = 0;  // of the round of the last roll call
    std::deque<Mail::Letter> unread{};
    size_t unread_bytes = 0;
    std::vector<Sent> applied{};
    bool meets = false;  // in the round of the last roll call
  };

  static void require(bool condition, const char* promise) {
    if (!condition) throw std::logic_error(std::string("a hub has broken its promise: ") + promise);
  }
  static bool has(const std::vector<int32_t>& ranks, int rank) { return std::ranges::count(ranks, rank) == 1; }

  Rank& of(int rank) { return ranks_.at(static_cast<size_t>(rank)); }
  bool must_meet(int64_t step) const { return step == meeting_ || (step + 1) / kSteps % rounds_ == 0; }

  void arrive(int rank, const Says& says) {
    Rank& r = of(rank);
    r.arrived = true;
    r.included = false;
    const WorkerShare share{.square = says.infinite ? INFINITY : 1, .stop = says.stop ? 1. : 0.};
    hub_.receive(rank, Arrival{r.step, kSteps, must_meet(r.step), {share}});
  }

  void send(int rank) {
    Rank& r = of(rank);
    r.owes = false;
    const Sent sent{r.sends, rank};
    sent_.push_back(sent);
    const auto* first = reinterpret_cast<const std::byte*>(&sent);
    hub_.receive(rank, Messages{{first, first + sizeof(sent)}});
  }

  void read(int rank) {
    Rank& r = of(rank);
    const Mail::Letter bytes = r.unread.front();
    r.unread.pop_front();
    r.unread_bytes -= bytes->size();
    const RoundLetter letter = read_letter(*bytes);
    if (const auto* roll = std::get_if<RollCall>(&letter)) {
      hear(rank, *roll);
    } else {
      apply(rank, std::get<Delivery>(letter));
    }
  }

  void hear(int rank, const RollCall& roll) {
    Rank& r = of(rank);
    require(!roll.ranks.empty() && roll.shares.size() == roll.ranks.size(), "every counted rank has a share");
    if (roll.steps == 0) {
      require(roll.step == r.told && !roll.everyone, "a round of no steps names the last step");
      without_steps_ += rank == 0;
    } else {
      require(roll.steps == kSteps && roll.step == r.told + kSteps, "no step is left out");
      require(roll.everyone || !must_meet(roll.step), "all meet where they must");
    }
    r.told = roll.step;
    r.steps = roll.steps;
    r.meets = roll.everyone;
    if (has(roll.ranks, rank)) {
      require(!r.owes, "a rank that is counted has sent its messages");
      r.owes = !roll.skipped;
      r.sends = roll.step;
      r.included = roll.skipped;
    }
    if (roll.skipped) end_round(rank, roll.step);
  }

  void apply(int rank, const Delivery& delivery) {
    Rank& r = of(rank);
    require(delivery.messages.size() == delivery.ranks.size() * sizeof(Sent), "a delivery names whose messages it has");
    for (size_t i = 0; i < delivery.ranks.size(); ++i) {
      Sent sent;
      std::memcpy(&sent, delivery.messages.data() + i * sizeof(sent), sizeof(sent));
      require(sent == Sent{delivery.step, delivery.ranks[i]}, "messages are delivered as they were sent");
      r.applied.push_back(sent);
    }
    empty_ += rank == 0 && delivery.ranks.empty();
    r.included = r.included || has(delivery.ranks, rank);
    if (!delivery.late) {
      end_round(rank, delivery.step);
    } else if (r.included) {
      go_on(r);
    }
  }

  void end_round(int rank, int64_t step) {
    Rank& r = of(rank);
    require(r.included || !r.meets, "where all meet, all are in");
    require(r.steps > 0 ? step >= r.step : step <= r.step && (!r.included || step == r.step), "steps do not go back");
    if (r.steps > 0) r.step = step;
    if (r.included) go_on(r);
  }

  static void go_on(Rank& r) {
    r.arrived = false;
    r.step += kSteps;
  }

  int64_t rounds_;
  int64_t meeting_ = -1;  // the step at which meet() lets all meet
  int64_t empty_ = 0, without_steps_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Sent> sent_;
  RoundHub hub_;
  RoundHub::Clock::time_point now_{};
};

}  // namespace dgc
