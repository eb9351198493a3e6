#include "dist/meeting/roster.h"

#include <catch.hpp>

#include "dist/meeting/fixed_text.h"

using namespace dgc;
using Catch::Contains;

TEST_CASE("a rank has one process", "[rendezvous]") {
  Hello own;
  own.size = 3;
  Roster roster(own, "");
  Hello hello = own;
  hello.rank = 1;
  hello.nonce = 5;
  CHECK(roster.answer(hello).verdict == Verdict::welcome);
  roster.serve(hello, roster.answer(hello));
  CHECK(roster.answer(hello).verdict == Verdict::welcome);  // the same process, whose connection broke
  hello.nonce = 6;
  CHECK(roster.answer(hello).verdict == Verdict::taken);
  CHECK_THAT(refusal(hello, roster.answer(hello)), Contains("the same rank"));
  hello.rank = 0;
  CHECK(roster.answer(hello).verdict == Verdict::taken);  // so is rank 0's seat
  hello.rank = 3;
  CHECK(roster.answer(hello).verdict == Verdict::rank);
  hello.rank = 2;
  hello.version = 9;
  CHECK(roster.answer(hello).verdict == Verdict::version);
  hello.version = own.version;
  hello.blob_bytes = 8;
  CHECK(roster.answer(hello).verdict == Verdict::blob);
  CHECK_THAT(refusal(hello, roster.answer(hello)), Contains("exchange.failure_timeout_s is 0 for one of them alone"));
  CHECK_FALSE(roster.complete());
  hello.blob_bytes = own.blob_bytes;
  const Reply welcome = roster.answer(hello);
  roster.serve(hello, welcome);
  roster.serve(hello, welcome);
  CHECK(roster.complete());
}

TEST_CASE("a rank that takes no part is heard, and so is rank 0's own failure", "[rendezvous]") {
  Hello own;
  own.size = 3;
  Hello hello = own;
  hello.rank = 2;
  set_text(hello.failure, "rank 2 (node7, pid 77): there is no data");
  Roster roster(own, "");
  CHECK(roster.answer(hello).verdict == Verdict::failed);
  CHECK(roster.failure().empty());  // it has not taken the answer
  Hello sound = own;
  sound.rank = 1;
  CHECK(roster.answer(sound).verdict == Verdict::failed);  // and yet nobody is welcome any more
  CHECK(get_text(roster.answer(sound).text) == "rank 2 (node7, pid 77): there is no data");
  roster.serve(hello, roster.answer(hello));
  CHECK(roster.failure() == "rank 2 (node7, pid 77): there is no data");
  hello.run = 5;
  CHECK(roster.answer(hello).verdict == Verdict::run);  // another run's failure is not this one's

  set_text(own.failure, "rank 0 (node1, pid 7): the disk is full");
  Roster declining(own, "");
  for (const uint32_t rank : {1u, 2u}) {
    CHECK_FALSE(declining.complete());
    Hello guest;
    guest.rank = rank;
    guest.size = 3;
    const Reply reply = declining.answer(guest);
    CHECK(reply.verdict == Verdict::failed);
    CHECK(get_text(reply.text) == "rank 0 (node1, pid 7): the disk is full");
    declining.serve(guest, reply);
  }
  CHECK(declining.complete());
}

TEST_CASE("a failure that a killed process has left behind is forgotten when its rank comes", "[rendezvous]") {
  Hello own;
  own.size = 3;
  const auto hello_of = [&](uint32_t rank, uint64_t nonce, const std::string& failure) {
    Hello hello = own;
    hello.rank = rank;
    hello.nonce = nonce;
    set_text(hello.failure, failure);
    return hello;
  };
  const Hello left = hello_of(1, 7, "rank 1: no data"), comes = hello_of(1, 8, ""), other = hello_of(2, 9, "");
  Roster roster(own, "");
  CHECK(roster.answer(left).verdict == Verdict::failed);
  CHECK(roster.answer(comes).verdict == Verdict::welcome);
  CHECK(roster.answer(other).verdict == Verdict::welcome);

  Roster told(own, "");
  static_cast<void>(told.answer(left));
  const Reply words = told.answer(other);  // another rank will end with these words
  const Reply reply = told.answer(comes);
  CHECK(reply.verdict == Verdict::failed);
  told.serve(other, words);
  CHECK(told.failure().empty());
  told.serve(comes, reply);
  CHECK(told.failure() == "rank 1: no data");
}

TEST_CASE("of many ranks that are missing eight are named, and all are counted", "[rendezvous]") {
  Hello own;
  own.size = 1024;
  Roster roster(own, "");
  CHECK(roster.absent() == "ranks 1, 2, 3, 4, 5, 6, 7, 8, ... (1023 in all) did not come");
  Hello hello = own;
  for (uint32_t rank = 2; rank <= 1015; ++rank) {
    hello.rank = rank;
    roster.serve(hello, {});
  }
  CHECK(roster.absent() == "ranks 1, 1016, 1017, 1018, 1019, 1020, 1021, 1022, ... (9 in all) did not come");
  hello.rank = 1;
  roster.serve(hello, {});
  CHECK(roster.absent() == "ranks 1016, 1017, 1018, 1019, 1020, 1021, 1022, 1023 did not come");
}

TEST_CASE("who comes to another run learns its name, where it has one", "[rendezvous]") {
  Hello own;
  own.size = 2;
  Hello stray = own;
  stray.rank = 1;
  stray.run = 5;
  CHECK_THAT(refusal(stray, Roster(own, "slurm 77.0 attempt 0").answer(stray)),
             Contains("belongs to another run (slurm 77.0 attempt 0); wait for it to end"));
  CHECK_THAT(refusal(stray, Roster(own, "").answer(stray)), Contains("belongs to another run; wait for it to end"));
}
