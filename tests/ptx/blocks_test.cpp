// Barriers, blocks in any order, threads that wait for others by looking again and again.
#include <catch.hpp>
#include <cstdint>
#include <set>

#include "tests/ptx/small_kernel.h"

using namespace dgc::ptx;
using Catch::Contains;

namespace {

// Adds 1 to the counter for each thread; then waits until the threads of all blocks have.
const char* const kMeetAllThreads =
    "mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ntid.x; mul.lo.u32 %r3, %r1, %r2;"
    "atom.add.release.gpu.global.u32 %r4, [%rd90], 1;"
    "$again: ld.acquire.gpu.global.u32 %r5, [%rd90]; setp.lt.u32 %p1, %r5, %r3; @%p1 bra $again;";

}  // namespace

TEST_CASE("threads that spin do not keep others from what they wait for", "[ptx]") {
  const SmallKernel kernel(kMeetAllThreads, 1);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    uint32_t counter = 0;
    kernel.run({.grid = 5, .block = 64, .seed = seed, .cooperative = true}, {&counter});
    REQUIRE(counter == 5 * 64);
  }
}

TEST_CASE("lanes of a warp that spin do not keep its other lanes back", "[ptx]") {
  // Lane 0 sets the flag only after its own long way; the others wait for it.
  const SmallKernel kernel(
      "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra $work;"
      "$again: ld.volatile.global.u32 %r5, [%rd90]; setp.eq.u32 %p2, %r5, 0; @%p2 bra $again; bra $end;"
      "$work: mov.u32 %r2, 0; $loop: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 500; @%p3 bra $loop;"
      "st.volatile.global.u32 [%rd90], %r2; $end:",
      1);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    uint32_t flag = 0;
    kernel.run({.seed = seed}, {&flag});
    REQUIRE(flag == 500);
  }
}

TEST_CASE("lanes that have all come to a shuffle go on while others spin", "[ptx]") {
  // Lanes 0 and 1 come to the shuffle on two ways; then lane 0 sets the flag for which the others wait.
  const SmallKernel kernel(
      "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 2; @%p1 bra $again; setp.eq.u32 %p2, %r1, 1; @%p2 bra $meet;"
      "mov.u32 %r2, 0; $loop: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 50; @%p3 bra $loop;"
      "$meet: shfl.sync.idx.b32 %r3, %r1, 1, 31, 3; st.volatile.global.u32 [%rd90], %r3; ret;"
      "$again: ld.volatile.global.u32 %r5, [%rd90]; setp.eq.u32 %p4, %r5, 0; @%p4 bra $again;",
      1);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    uint32_t flag = 0;
    kernel.run({.seed = seed}, {&flag});
    REQUIRE(flag == 1);
  }
}

TEST_CASE("who waits for blocks that cannot come is named", "[ptx]") {
  uint32_t counter = 0;
  const SmallKernel kernel(kMeetAllThreads, 1);
  // Not cooperative: at most some blocks are resident, and none leaves.
  CHECK_THROWS_WITH(kernel.run({.grid = 50, .block = 32}, {&counter}),
                    Contains("go round and wait for what nobody does"));
}

TEST_CASE("a barrier has all of the block before it", "[ptx]") {
  const SmallKernel kernel(
      ".shared .align 4 .b8 there[512];"
      "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, there; add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1;"
      "bar.sync 0;"
      "xor.b32 %r5, %r2, 508; add.u32 %r6, %r3, %r5; ld.shared.u32 %r7, [%r6];"
      "cvt.u64.u32 %rd1, %r2; add.u64 %rd2, %rd90, %rd1; st.global.u32 [%rd2], %r7;",
      1);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<uint32_t> out(128);
    kernel.run({.block = 128, .seed = seed}, {out.data()});
    for (uint32_t i = 0; i < 128; ++i) REQUIRE(out[i] == 127 - i);
  }
}

TEST_CASE("a barrier that not all threads reach is an error that says who waits", "[ptx]") {
  const auto run = [](const std::string& body) { SmallKernel(body, 0).run({.grid = 2, .block = 64}, {}); };
  CHECK_THROWS_WITH(run("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 63; @%p1 ret; bar.sync 0;"),
                    Contains("wait for each other") && Contains("1 of block") && Contains("have returned") &&
                        Contains("'bar.sync 0'"));
  // Half of each warp waits at one barrier, half at the other.
  CHECK_THROWS_WITH(run("mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra $other;"
                        "bar.sync 0; bra $end;\n\t$other: bar.sync 0; $end:"),
                    Contains("32 of block") && Contains("wait at line"));
}

TEST_CASE("the same seed gives the same order, another one another", "[ptx]") {
  const SmallKernel kernel(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1;"
      "atom.add.global.u32 %r4, [%rd90], 1; mul.wide.u32 %rd1, %r4, 4; add.u64 %rd2, %rd91, %rd1;"
      "st.global.u32 [%rd2], %r3;",
      2);
  const auto order = [&](uint64_t seed) {
    std::vector<uint32_t> arrivals(256);
    uint32_t count = 0;
    kernel.run({.grid = 4, .block = 64, .seed = seed}, {&count, arrivals.data()});
    return arrivals;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
  const auto some = order(3);
  CHECK(std::set<uint32_t>(some.begin(), some.end()).size() == 256);
}
