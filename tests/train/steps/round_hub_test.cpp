#include "train/steps/round_hub.h"

#include <algorithm>
#include <catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tensor/errors.h"
#include "tests/support/uneven_ranks.h"

namespace dgc {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> letter_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string listed(const std::vector<int32_t>& ranks) {
  std::string text;
  for (const int32_t rank : ranks) text += std::to_string(rank);
  return text;
}

// What a letter says, as short as a test can read it: "step 3: 012", "step 3: 012 skips", "step 3: 02 sent ac".
std::string said(const RoundLetter& letter) {
  if (const auto* roll = std::get_if<RollCall>(&letter)) {
    return "step " + std::to_string(roll->step) + ": " + listed(roll->ranks) + (roll->everyone ? " all" : "") +
           (roll->worker_steps == 4 * std::ssize(roll->ranks) ? "" : " of " + std::to_string(roll->worker_steps)) +
           (roll->skipped ? " skips" : "");
  }
  const auto& delivery = std::get<Delivery>(letter);
  return "step " + std::to_string(delivery.step) + ": " + listed(delivery.ranks) + " sent " +
         text_of(delivery.messages) + (delivery.late ? " late" : "");
}

// A hub, its clock, and what each rank has been told since it was last asked.
class Scene {
 public:
  explicit Scene(int ranks, std::chrono::duration<double> wait = 2s)
      : told_(static_cast<size_t>(ranks)),
        hub_(
            {ranks, wait, 100},
            [this](int rank, const Mail::Letter& letter) {
              told_[static_cast<size_t>(rank)].push_back(said(read_letter(*letter)));
            },
            [this](int rank) { return unread[rank]; }) {}

  void arrives(int rank, int64_t step, bool everyone = false, double square = 1, double stop = 0) {
    hub_.receive(rank, Arrival{step, 4, everyone, {{.square = square, .stop = stop}}});
    hub_.look_around(now_);
  }
  void sends(int rank, const std::string& messages) {
    hub_.receive(rank, Messages{letter_of(messages)});
    hub_.look_around(now_);
  }
  void passes(std::chrono::duration<double> time) {
    now_ += std::chrono::duration_cast<RoundHub::Clock::duration>(time);
    hub_.look_around(now_);
  }
  // All ranks have been told the same; what that was.
  std::vector<std::string> told() {
    std::vector<std::string> first = told_.front();
    for (std::vector<std::string>& one : told_) {
      CHECK(one == first);
      one.clear();
    }
    return first;
  }
  RoundHub& hub() { return hub_; }

  std::map<int, size_t> unread;

 private:
  std::vector<std::vector<std::string>> told_;
  RoundHub hub_;
  RoundHub::Clock::time_point now_{};
};

using Told = std::vector<std::string>;

// UnevenRanks that act in a random order. Some may stand still.
class Crowd {
 public:
  Crowd(int ranks, unsigned seed)
      : random_(seed), stands_(static_cast<size_t>(ranks)), ranks_({ranks, 2s, 1'000'000}) {}

  void moves(int times) {
    for (int i = 0; i < times; ++i) {
      const size_t rank = random_() % stands_.size();
      if (stands_[rank]) {
        ranks_.pass(100ms);
      } else {
        ranks_.act(static_cast<int>(rank), 100ms, {});
      }
    }
  }
  void stop_some(size_t most) {
    stop_nobody();
    for (size_t i = 0; i < most; ++i) stands_[random_() % stands_.size()] = true;
  }
  void stop_nobody() { stands_.assign(stands_.size(), false); }
  UnevenRanks& ranks() { return ranks_; }

 private:
  std::mt19937 random_;
  std::vector<bool> stands_;
  UnevenRanks ranks_;
};

}  // namespace

TEST_CASE("letters between ranks arrive as they were written, and nothing else is one") {
  const RollCall roll{.step = 7, .steps = 3, .skipped = true, .ranks = {0, 2}, .shares = {{.square = 2}, {}}};
  const auto bytes = *to_letter(roll);
  const auto got = std::get<RollCall>(read_letter(bytes));
  CHECK((got.step == 7 && got.steps == 3 && got.skipped && !got.everyone));
  CHECK((got.ranks == roll.ranks && got.shares.size() == 2 && got.shares[0].square == 2));
  const auto arrival = std::get<Arrival>(read_letter(*to_letter(Arrival{5, 2, true, {{.stop = 1}}})));
  CHECK((arrival.step == 5 && arrival.steps == 2 && arrival.everyone && arrival.shares.at(0).stop == 1));
  CHECK(text_of(std::get<Messages>(read_letter(*to_letter(Messages{letter_of("abc")}))).bytes) == "abc");
  CHECK(std::get<Delivery>(read_letter(*to_letter(Delivery{3, true, {1}, {}}))).late);

  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(read_letter(std::span(bytes).first(size)), InternalError);
  }
  auto longer = bytes;
  longer.push_back({});
  CHECK_THROWS_AS(read_letter(longer), InternalError);
  longer = bytes;
  longer[0] = std::byte{9};
  CHECK_THROWS_AS(read_letter(longer), InternalError);
}

TEST_CASE("a round in which nobody is late waits for nothing but its ranks") {
  Scene scene(3);
  scene.arrives(2, 3);
  scene.arrives(0, 3);
  CHECK(scene.told().empty());
  scene.arrives(1, 3);
  CHECK(scene.told() == Told{"step 3: 012"});
  scene.sends(1, "b");
  scene.sends(0, "a");
  CHECK(scene.told().empty());
  scene.sends(2, "c");
  CHECK(scene.told() == Told{"step 3: 012 sent abc"});
}

TEST_CASE("who is not there in time is left out, and is in the next round") {
  Scene scene(3);
  scene.arrives(0, 3);
  scene.passes(10s);  // one of three is not half of them
  CHECK(scene.told().empty());
  scene.arrives(2, 3);
  scene.passes(1.9s);
  CHECK(scene.told().empty());
  scene.passes(0.2s);
  CHECK(scene.told() == Told{"step 3: 02"});
  scene.arrives(1, 3);  // too late
  scene.sends(0, "a");
  scene.sends(2, "c");
  CHECK(scene.told() == Told{"step 3: 02 sent ac"});
  scene.passes(10s);  // rank 1 alone, which is behind, begins no round
  CHECK(scene.told().empty());
  scene.arrives(0, 7);
  scene.arrives(2, 7);
  CHECK(scene.told() == Told{"step 7: 012"});
  for (int rank = 0; rank < 3; ++rank) scene.sends(rank, std::string(1, static_cast<char>('a' + rank)));
  CHECK(scene.told() == Told{"step 7: 012 sent abc"});
}

TEST_CASE("nobody waits twice for a rank that is away, and it is waited for again once it was there") {
  Scene scene(3);
  const auto round = [&](int64_t step, const std::vector<int>& ranks) {
    for (const int rank : ranks) scene.arrives(rank, step);
  };
  const auto all_send = [&](const std::vector<int>& ranks) {
    for (const int rank : ranks) scene.sends(rank, "x");
    scene.told();
  };
  round(3, {0, 1});
  CHECK(scene.told().empty());
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 3: 01"});
  all_send({0, 1});
  round(7, {0});
  scene.passes(10s);
  CHECK(scene.told().empty());  // still half of the ranks must be there
  round(7, {1});
  CHECK(scene.told() == Told{"step 7: 01"});
  all_send({0, 1});
  round(3, {2});
  round(11, {0, 1});
  CHECK(scene.told() == Told{"step 11: 012"});
  all_send({0, 1, 2});
  round(15, {0, 1});
  CHECK(scene.told().empty());
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 15: 01"});
}

TEST_CASE("messages that come too late are delivered by themselves, as soon as no round is under way") {
  Scene scene(4);
  for (int rank = 0; rank < 4; ++rank) scene.arrives(rank, 3);
  scene.sends(0, "a");
  scene.sends(1, "b");
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 3: 0123", "step 3: 01 sent ab"});
  scene.arrives(0, 7);
  scene.arrives(1, 7);  // nobody waits for ranks 2 and 3 once more
  CHECK(scene.told() == Told{"step 7: 01"});
  scene.sends(3, "d");  // within a round
  scene.sends(0, "A");
  scene.sends(1, "B");
  CHECK(scene.told() == Told{"step 7: 01 sent AB", "step 3: 3 sent d late"});
  scene.arrives(0, 11);
  CHECK(scene.told().empty());
  scene.sends(2, "c");
  CHECK(scene.told() == Told{"step 3: 2 sent c late"});
  scene.arrives(1, 11);  // ranks 2 and 3 have begun their rounds later, and nobody waits for them
  CHECK(scene.told() == Told{"step 11: 01"});
  scene.sends(0, "A");
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 11: 0 sent A"});  // and now rank 1 is late with its messages
  for (const int rank : {3, 2, 0}) scene.arrives(rank, 15);
  CHECK(scene.told() == Told{"step 15: 023"});
}

TEST_CASE("a round whose ranks send nothing ends without messages, for those who wait meanwhile") {
  Scene scene(2);
  scene.arrives(0, 3);
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 3: 0"});
  scene.passes(10s);  // only rank 0 could go on, and the round needs its messages
  CHECK(scene.told().empty());
  scene.arrives(1, 3);
  scene.passes(1.9s);
  CHECK(scene.told().empty());
  scene.passes(0.2s);  // the next round is of no steps, as rank 1 is behind step 3 and nobody is there who is not
  CHECK(scene.told() == Told{"step 3:  sent ", "step 3: 1"});
  scene.sends(1, "b");
  CHECK(scene.told() == Told{"step 3: 1 sent b"});
  scene.arrives(1, 7);
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 7: 1"});
  scene.sends(0, "a");
  scene.sends(1, "B");
  CHECK(scene.told() == Told{"step 7: 1 sent B", "step 3: 0 sent a late"});
}

TEST_CASE("ranks that stand still hold up nobody while more than half move, and no message is lost") {
  const auto ranks = GENERATE(2, 3, 4, 5);
  const auto seed = GENERATE(range(0, 40));
  CAPTURE(ranks, seed);
  Crowd crowd(ranks, static_cast<unsigned>(seed));
  for (int times = 0; times < 5; ++times) {
    crowd.stop_some(static_cast<size_t>(ranks - 1) / 2);
    crowd.moves(400);
    const int64_t before = crowd.ranks().last_step();
    crowd.moves(400);
    CHECK(crowd.ranks().last_step() > before);
  }
  crowd.ranks().meet();
}

TEST_CASE("where half of the ranks stand still, the others may wait, and no message is lost") {
  const auto ranks = GENERATE(2, 4);
  int64_t empty = 0, without_steps = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    CAPTURE(ranks, seed);
    Crowd crowd(ranks, seed);
    for (int times = 0; times < 40; ++times) {
      crowd.stop_some(static_cast<size_t>(ranks) / 2);
      crowd.moves(60);
    }
    crowd.stop_nobody();
    const int64_t before = crowd.ranks().last_step();
    crowd.moves(400);
    CHECK(crowd.ranks().last_step() > before);
    crowd.ranks().meet();
    empty += crowd.ranks().empty();
    without_steps += crowd.ranks().without_steps();
  }
  CHECK(empty > 0);
  CHECK(without_steps > 0);
}

TEST_CASE("where all must come, all do, however late they are, and late messages with them") {
  const auto why = GENERATE("an arrival says so", "a rank was asked to stop", "a rank has not read its letters");
  CAPTURE(why);
  Scene scene(3);
  for (int rank = 0; rank < 3; ++rank) scene.arrives(rank, 3);
  scene.sends(0, "a");
  scene.sends(2, "c");
  scene.passes(2.1s);
  CHECK(scene.told() == Told{"step 3: 012", "step 3: 02 sent ac"});
  if (why == std::string("a rank has not read its letters")) scene.unread[1] = 101;
  scene.arrives(0, 7, why == std::string("an arrival says so"), 1, why == std::string("a rank was asked to stop"));
  scene.passes(100s);
  scene.arrives(2, 7);
  scene.passes(100s);
  CHECK(scene.told().empty());
  scene.sends(1, "b");
  CHECK(scene.told() == Told{"step 3: 1 sent b late"});
  scene.passes(100s);
  CHECK(scene.told().empty());
  scene.arrives(1, 7);
  CHECK(scene.told() == Told{"step 7: 012 all"});
  scene.sends(1, "B");
  scene.sends(2, "C");
  scene.passes(100s);
  CHECK(scene.told().empty());
  scene.sends(0, "A");
  CHECK(scene.told() == Told{"step 7: 012 sent ABC"});
}

TEST_CASE("a round is skipped by those who are there, and late messages outlast it") {
  Scene scene(3);
  for (int rank = 0; rank < 3; ++rank) scene.arrives(rank, 3);
  scene.sends(0, "a");
  scene.sends(1, "b");
  scene.passes(2.1s);
  CHECK(scene.told().size() == 2);
  scene.arrives(0, 7, false, NAN);
  scene.arrives(1, 7);
  CHECK(scene.told() == Told{"step 7: 01 skips"});
  scene.sends(2, "c");
  CHECK(scene.told() == Told{"step 3: 2 sent c late"});
  scene.arrives(1, 11);
  scene.arrives(0, 11);
  CHECK(scene.told() == Told{"step 11: 01"});
}

TEST_CASE("a rank that writes out of turn is found out") {
  Scene scene(2);
  CHECK_THROWS_AS(scene.sends(1, "b"), InternalError);
  scene.arrives(1, 3);
  CHECK_THROWS_AS(scene.arrives(1, 3), InternalError);
  CHECK_THROWS_AS(scene.hub().receive(0, RollCall{}), InternalError);
}

TEST_CASE("a rank that arrives for a step that was skipped is late") {
  Scene scene(2);
  scene.arrives(0, 4, false, INFINITY);
  scene.passes(3s);
  REQUIRE(scene.told().size() == 1);
  scene.arrives(1, 4);
  scene.passes(3s);
  CHECK(scene.told().empty());
}

}  // namespace dgc
