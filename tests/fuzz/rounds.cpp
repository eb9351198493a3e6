// Ranks that may be late (train/steps/round_hub.h). The first part of the input is read as a letter. The rest decides
// how many ranks there are, how often all must meet, and then, byte by byte, which rank acts next, how the clock goes
// on, and which arrivals are not finite or ask to stop. In the end all ranks act until all have met. Then every rank
// must have been told of the same messages in the same order, and of each that was sent exactly once.
#include <algorithm>
#include <cmath>
#include <compare>
#include <deque>
#include <map>

#include "tests/fuzz/input.h"
#include "train/steps/round_hub.h"

using namespace dgc;

namespace {

constexpr int64_t kSteps = 4;  // of a round
constexpr std::chrono::milliseconds kWait(100);

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

struct Sent {
  int64_t step = 0, rank = 0;
  auto operator<=>(const Sent&) const = default;
};

class Ranks {
 public:
  Ranks(int ranks, int64_t rounds_to_meeting)
      : rounds_(rounds_to_meeting),
        ranks_(static_cast<size_t>(ranks)),
        hub_(
            {ranks, kWait, 200},
            [this](int rank, const Mail::Letter& letter) {
              of(rank).unread.push_back(letter);
              of(rank).unread_bytes += letter->size();
            },
            [this](int rank) { return of(rank).unread_bytes; }) {}

  void act(int rank, uint8_t how) {
    now_ += std::chrono::milliseconds(how >> 2);
    Rank& r = of(rank);
    if (r.owes) {
      send(rank);
    } else if (!r.arrived) {
      arrive(rank, (how & 3) == 3, (how & 3) == 2);
    } else if (!r.unread.empty()) {
      read(rank);
    }
    hub_.look_around(now_);
  }

  // Lets all ranks come to the end of the same round, where all must meet.
  void meet() {
    int64_t goal = 0;
    for (const Rank& r : ranks_) goal = std::max(goal, r.step);
    while (!must_meet(goal)) goal += kSteps;
    const auto there = [&](const Rank& r) { return !r.arrived && r.step == goal + kSteps; };
    for (int turn = 0; !std::ranges::all_of(ranks_, there); ++turn) {
      fuzz::require(turn < 10'000);  // or somebody waits for ever
      for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
        if (!there(of(rank))) act(rank, 0xfc);
      }
    }
    for (const Rank& r : ranks_) fuzz::require(r.applied == ranks_.front().applied);
    std::map<Sent, int> times;
    for (const Sent& sent : ranks_.front().applied) ++times[sent];
    fuzz::require(times.size() == sent_.size());
    for (const Sent& sent : sent_) fuzz::require(times[sent] == 1);
  }

 private:
  struct Rank {
    int64_t step = kSteps - 1;  // of the round that it is in
    bool arrived = false, included = false, owes = false;
    int64_t sends = 0;  // the step that it owes its messages of
    int64_t steps = 0;  // of the round of the last roll call
    std::deque<Mail::Letter> unread;
    size_t unread_bytes = 0;
    std::vector<Sent> applied;
    bool meets = false;  // in the round of the last roll call
  };

  Rank& of(int rank) { return ranks_.at(static_cast<size_t>(rank)); }
  bool must_meet(int64_t step) const { return (step + 1) / kSteps % rounds_ == 0; }
  static bool has(const std::vector<int32_t>& ranks, int rank) { return std::ranges::count(ranks, rank) == 1; }

  void arrive(int rank, bool infinite, bool stop) {
    Rank& r = of(rank);
    r.arrived = true;
    r.included = false;
    hub_.receive(
        rank, Arrival{r.step, kSteps, must_meet(r.step), {{.square = infinite ? INFINITY : 1, .stop = stop ? 1. : 0}}});
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
      fuzz::require(!roll->ranks.empty() && roll->shares.size() == roll->ranks.size());
      fuzz::require(roll->steps == kSteps || roll->steps == 0);
      fuzz::require(roll->everyone ? roll->steps > 0 : roll->steps == 0 || !must_meet(roll->step));
      r.steps = roll->steps;
      r.meets = roll->everyone;
      if (has(roll->ranks, rank)) {
        r.owes = !roll->skipped;
        r.sends = roll->step;
        r.included = roll->skipped;
      }
      if (roll->skipped) end_round(rank, roll->step);
      return;
    }
    const auto& delivery = std::get<Delivery>(letter);
    fuzz::require(delivery.messages.size() == delivery.ranks.size() * sizeof(Sent));
    for (size_t i = 0; i < delivery.ranks.size(); ++i) {
      Sent sent;
      std::memcpy(&sent, delivery.messages.data() + i * sizeof(sent), sizeof(sent));
      fuzz::require(sent == Sent{delivery.step, delivery.ranks[i]});
      r.applied.push_back(sent);
    }
    r.included = r.included || has(delivery.ranks, rank);
    if (!delivery.late) {
      end_round(rank, delivery.step);
    } else if (r.included) {
      go_on(r);
    }
  }

  void end_round(int rank, int64_t step) {
    Rank& r = of(rank);
    fuzz::require(r.included || !r.meets);
    fuzz::require(r.steps > 0 ? step >= r.step : step <= r.step && (!r.included || step == r.step));
    if (r.steps > 0) r.step = step;
    if (r.included) go_on(r);
  }

  static void go_on(Rank& r) {
    r.arrived = false;
    r.step += kSteps;
  }

  int64_t rounds_;
  std::vector<Rank> ranks_;
  std::vector<Sent> sent_;
  RoundHub hub_;
  RoundHub::Clock::time_point now_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any(data, std::min<size_t>(size, 64));
  fuzz::Input input(data, size);
  const int count = 1 + input.take<uint8_t>() % 6;
  Ranks ranks(count, 1 + input.take<uint8_t>() % 16);
  while (input.left() > 1) {
    const int rank = input.take<uint8_t>() % count;
    ranks.act(rank, input.take<uint8_t>());
  }
  ranks.meet();
  return 0;
}
