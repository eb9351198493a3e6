// Lanes that exchange values, part and meet.
#include <catch.hpp>
#include <cstdint>
#include <numeric>

#include "tests/ptx/small_kernel.h"

using namespace dgc::ptx;
using Catch::Contains;

namespace {

using Values = std::vector<uint32_t>;

// What each of 32 lanes has in %r10 after the body, in which %r1 is the lane; whatever the order.
Values lanes_after(const std::string& body, uint64_t seed = 1) {
  Values out(32);
  const SmallKernel kernel("mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1; mad.lo.u64 %rd2, %rd1, 4, %rd90;" + body +
                               "; st.global.u32 [%rd2], %r10;",
                           1);
  kernel.run({.seed = seed}, {out.data()});
  return out;
}

template <typename F>
Values each_lane(const F& f) {
  Values values;
  for (uint32_t lane = 0; lane < 32; ++lane) values.push_back(static_cast<uint32_t>(f(lane)));
  return values;
}

void run(const std::string& body, unsigned threads = 32) {
  SmallKernel(body, 0).run({.grid = 2, .block = threads}, {});
}

}  // namespace

TEST_CASE("shuffles read other lanes, and keep to their groups", "[ptx]") {
  CHECK(lanes_after("shfl.sync.up.b32 %r10|%p1, %r1, 3, 0, -1") == each_lane([](auto l) { return l < 3 ? l : l - 3; }));
  CHECK(lanes_after("shfl.sync.down.b32 %r10|%p1, %r1, 3, 31, -1") ==
        each_lane([](auto l) { return l > 28 ? l : l + 3; }));
  CHECK(lanes_after("shfl.sync.bfly.b32 %r10, %r1, 16, 31, -1") == each_lane([](auto l) { return l ^ 16; }));
  CHECK(lanes_after("shfl.sync.idx.b32 %r10, %r1, 5, 31, -1") == each_lane([](auto) { return 5; }));
  // Groups of eight: __shfl_down_sync(..., 3, 8).
  CHECK(lanes_after("shfl.sync.down.b32 %r10|%p1, %r1, 3, 0x181f, -1") ==
        each_lane([](auto l) { return l % 8 < 5 ? l + 3 : l; }));
  CHECK(lanes_after("shfl.sync.up.b32 %r9|%p1, %r1, 3, 0, -1; selp.u32 %r10, 1, 0, %p1") ==
        each_lane([](auto l) { return l >= 3; }));
}

TEST_CASE("votes, matches and reductions", "[ptx]") {
  const std::string odd = "and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0; ";
  CHECK(lanes_after(odd + "vote.sync.ballot.b32 %r10, %p1, -1") == each_lane([](auto) { return 0xaaaaaaaau; }));
  CHECK(lanes_after(odd + "vote.sync.ballot.b32 %r10, !%p1, -1") == each_lane([](auto) { return 0x55555555u; }));
  CHECK(lanes_after(odd + "vote.sync.any.pred %p2, %p1, -1; selp.u32 %r10, 1, 0, %p2") ==
        each_lane([](auto) { return 1; }));
  CHECK(lanes_after(odd + "vote.sync.all.pred %p2, %p1, -1; selp.u32 %r10, 1, 0, %p2") ==
        each_lane([](auto) { return 0; }));
  CHECK(lanes_after("shr.u32 %r2, %r1, 3; match.any.sync.b32 %r10, %r2, -1") ==
        each_lane([](auto l) { return 0xffu << l / 8 * 8; }));
  CHECK(lanes_after("redux.sync.add.u32 %r10, %r1, -1") == each_lane([](auto) { return 496; }));
  CHECK(lanes_after("redux.sync.max.s32 %r10, %r1, -1") == each_lane([](auto) { return 31; }));
}

TEST_CASE("lanes that have parted exchange with those that their masks name", "[ptx]") {
  const std::string body =
      "setp.lt.u32 %p1, %r1, 8; @%p1 bra $low;"
      "add.u32 %r2, %r1, 100; shfl.sync.bfly.b32 %r10, %r2, 1, 31, 0xffffff00; bra $end;"
      "$low: shfl.sync.bfly.b32 %r10, %r1, 2, 31, 0xff;"
      "$end: bar.warp.sync -1";
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(lanes_after(body, seed) == each_lane([](auto l) { return l < 8 ? l ^ 2 : (l ^ 1) + 100; }));
  }
}

TEST_CASE("lanes that go round a loop for different times all arrive", "[ptx]") {
  const std::string body =
      "mov.u32 %r10, 0; mov.u32 %r3, 0;"
      "$more: setp.ge.u32 %p1, %r3, %r1; @%p1 bra $done;"
      "add.u32 %r10, %r10, %r3; add.u32 %r3, %r3, 1; bra.uni $more;"
      "$done:";
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CHECK(lanes_after(body, seed) == each_lane([](auto l) { return l * (l - 1) / 2; }));
  }
}

TEST_CASE("a branch that is called uniform must be it", "[ptx]") {
  CHECK_THROWS_WITH(run("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 4; @%p1 bra.uni $end; mov.u32 %r2, 0; $end:"),
                    Contains("test.ptx:") && Contains("uniform"));
}

TEST_CASE("what lanes do wrong together is an error", "[ptx]") {
  CHECK_THROWS_WITH(run("mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffff;"),
                    Contains("not in its own mask") && Contains("thread 16 of block"));
  CHECK_THROWS_WITH(run("bar.warp.sync -1;", 16), Contains("not there, or have returned"));
  CHECK_THROWS_WITH(run("mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 8; @%p1 ret;"
                        "shfl.sync.idx.b32 %r2, %r1, 9, 31, 0xff;"),
                    Contains("lane 9 is read"));
  // Lane 31 waits at another place for all others.
  CHECK_THROWS_WITH(run("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 31; @%p1 bra $alone;"
                        "bar.warp.sync -1; bra $end;\n\t$alone: bar.warp.sync -1; $end:"),
                    Contains("31 of block 0 wait at line 10") && Contains("1 of block 0 wait at line 11"));
}
