#include "dist/meeting/rendezvous.h"

#include <catch.hpp>
#include <stdexcept>

#include "tests/dist/meeting/meeting.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

TEST_CASE("all ranks get rank 0's bytes", "[rendezvous]") {
  const int size = GENERATE(1, 2, 3, 9);
  const Directory directory;
  CAPTURE(size);
  CHECK(outcomes(ranks_at(tcp(), size, kLong)) == std::vector<std::string>(static_cast<size_t>(size)));
  CHECK(outcomes(ranks_at(in_files(directory), size, kLong)) == std::vector<std::string>(static_cast<size_t>(size)));
  CHECK(directory.empty());
}

TEST_CASE("rank 0 may be late, and so may others", "[rendezvous]") {
  const Directory directory;
  const int late = GENERATE(0, 2);
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    auto ranks = ranks_at(point, 3, kLong);
    ranks[static_cast<size_t>(late)].delay = milliseconds(150);
    CHECK(outcomes(ranks) == kFine3);
  }
}

TEST_CASE("two runs in a row can meet at one place", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    for (int run = 0; run < 3; ++run) CHECK(outcomes(ranks_at(point, 3, kLong)) == kFine3);
  }
}

TEST_CASE("a missing rank ends the wait of the others, by name", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    CAPTURE(point.url());
    auto ranks = ranks_at(point, 4, kMedium);
    ranks.erase(ranks.begin() + 1);
    ranks.pop_back();
    const auto found = outcomes(ranks);  // ranks 0 and 2
    CHECK_THAT(found[0], Contains("rank 0 waited 3 s at " + point.url()) && Contains("ranks 1, 3 did not come"));
    CHECK(found[1].empty());
    const std::string alone = outcome(launch_of(1, 2, point), within(kShort));
    CHECK_THAT(alone, Contains("rank 1 of 2 did not find rank 0 at " + point.url() + " within 1 s"));
  }
  CHECK(directory.empty());
}

TEST_CASE("a rank that does not belong is turned away and told why", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = GENERATE(false, true) ? in_files(directory) : tcp();
  CAPTURE(point.url());
  auto ranks = ranks_at(point, 2, kMedium);
  std::string fault, seen;
  SECTION("another size") {
    ranks[1].launch.size = 3;
    fault = "rank 0 counts 2 ranks and this one 3";
    seen = "the number of ranks";
  }
  SECTION("another run") {
    ranks[1].launch.run = "test 2";
    fault = "belongs to another run (test 1)";
    seen = "the run";
  }
  const auto found = outcomes(ranks);
  CHECK_THAT(found[0], Contains("rank 1 did not come; rank 1 was turned away, as it differs in " + seen));
  CHECK_THAT(found[1], Contains("was turned away by rank 0: ") && Contains(fault) && Contains(point.url()));
}

TEST_CASE("after one that does not belong the right one can still come", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    const auto ranks = ranks_at(point, 2, kLong);
    Launch stranger = ranks[1].launch;
    stranger.run = "test 2";
    auto rank0 = come(ranks[0]);
    CHECK_THAT(outcome(stranger, ranks[1].options), Contains("belongs to another run"));
    CHECK(outcome(ranks[1].launch, ranks[1].options).empty());
    CHECK(rank0.get().empty());
  }
  CHECK(directory.empty());
}

TEST_CASE("who waits says for whom, and what that throws ends the wait", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = GENERATE(false, true) ? in_files(directory) : tcp();
  CAPTURE(point.url());
  // What a rank says while it waits, until one of its clauses has these words in it.
  const auto waits = [&](int rank, const std::string& words) {
    RendezvousOptions options = within(std::chrono::hours(1));
    options.while_waiting = [&](const std::string& waiting) {
      if (waiting.find(words) != std::string::npos) throw std::runtime_error(waiting);
    };
    Blob blob{};
    try {
      share_from_rank0(launch_of(rank, 3, point), options, blob);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(waits(0, "so far") == fmt::format("rank 0 waits at {}: so far ranks 1, 2 did not come", point.url()));
  CHECK(waits(2, "not answer yet") == fmt::format("rank 2 waits for rank 0 at {}, which does not answer yet ({})",
                                                  point.url(), point.is_file() ? "no reply" : "Connection refused"));
  CHECK(directory.empty());
}

TEST_CASE("all learn of a rank that failed before it came, also those that come later", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = GENERATE(false, true) ? in_files(directory) : tcp();
  CAPTURE(point.url());
  const RendezvousOptions patient = within(std::chrono::hours(1));
  const std::string reason = "rank 1 (node7, pid 77): there is no data";
  std::string at_rank0, at_rank2;
  {
    std::jthread rank0([&] {
      at_rank0 = outcome(launch_of(0, 3, point), patient);
      decline_meeting(launch_of(0, 3, point), within(kLong), at_rank0.substr(6));
    });
    std::jthread rank1([&] {
      decline_meeting(launch_of(1, 3, point), within(kLong), reason);
      at_rank2 = outcome(launch_of(2, 3, point), patient);  // who comes late
      decline_meeting(launch_of(1, 3, point), within(kLong), reason);
    });
  }
  CHECK(at_rank0 == "peer: " + reason);
  CHECK(at_rank2 == "peer: " + reason);
  CHECK(directory.empty());
}

TEST_CASE("who declines leaves when nobody is there who could be told", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    for (const int rank : {0, 1}) CHECK_NOTHROW(decline_meeting(launch_of(rank, 3, point), within(kShort), "why"));
  }
  CHECK(directory.empty());
}
