#include "dist/roster.h"

#include <catch2/catch.hpp>

using namespace dgc;
using Catch::Contains;

TEST_CASE("a rank has one process", "[rendezvous]") {
  Hello own;
  own.size = 3;
  Roster roster(own);
  Hello hello = own;
  hello.rank = 1;
  hello.nonce = 5;
  CHECK(roster.answer(hello).verdict == Verdict::welcome);
  roster.serve(1);
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
  CHECK_FALSE(roster.complete());
  roster.serve(2);
  roster.serve(2);
  CHECK(roster.complete());
}
