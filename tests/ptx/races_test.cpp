// Data races that must be found, and sound programs in which there is none.
#include <catch.hpp>
#include <cstdint>

#include "tests/ptx/small_kernel.h"

using namespace dgc::ptx;
using Catch::Contains;

namespace {

// Runs two blocks of 64 threads with 64 numbers of global memory; the error, or nothing.
std::string races(const std::string& body, RaceCheck check = RaceCheck::as_on_gpus) {
  const SmallKernel kernel(
      ".shared .align 4 .b8 room[256];"
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, room;"
      "add.u32 %r5, %r4, %r3; xor.b32 %r6, %r3, 252; add.u32 %r7, %r4, %r6; cvt.u64.u32 %rd3, %r3;" +
          body,
      1);
  try {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<uint32_t> memory(64);
      kernel.run({.grid = 2, .block = 64, .seed = seed, .cooperative = true, .races = check}, {memory.data()});
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

// Block 0 writes, all of it or its thread 0; block 1 reads what thread 0 has written, after a message. The parts that
// release and acquire are to be filled in.
std::string message(const std::string& release, const std::string& acquire) {
  return "setp.eq.u32 %p1, %r2, 0; @!%p1 bra $reader; st.global.u32 [%rd90+4], 1;" + release +
         "bra $end; $reader:" + acquire + "ld.global.u32 %r20, [%rd90+4]; $end:";
}
const std::string kOneThread = "setp.ne.u32 %p9, %r1, 0; @%p9 ret;";
const std::string kWait = "setp.eq.u32 %p2, %r10, 0; @%p2 bra $again;";

}  // namespace

TEST_CASE("races in shared memory are found, and barriers prevent them", "[ptx]") {
  const std::string write = "st.shared.u32 [%r5], %r1;", read = "ld.shared.u32 %r8, [%r7];";
  CHECK_THAT(races("bar.sync 0;" + write + "bar.sync 0;" + read + write),
             Contains("data races") && Contains("write and read"));
  CHECK(races(write + "bar.sync 0;" + read) == "");
  CHECK(races(write + "bar.sync 0;" + read + "bar.sync 0;" + write) == "");
  CHECK_THAT(races("st.shared.u32 [room], %r1;"), Contains("both write"));
  CHECK(races("st.shared.u32 [room], 7;") != "");  // warps write the same, but they are different instructions in time
}

TEST_CASE("lanes of a warp are in order after bar.warp.sync, not after a shuffle", "[ptx]") {
  const std::string write = "st.shared.u32 [%r5], %r1;",
                    read = "xor.b32 %r9, %r3, 4; add.u32 %r9, %r4, %r9; ld.shared.u32 %r8, [%r9]; ";
  CHECK(races(write + "bar.warp.sync -1;" + read) == "");
  CHECK_THAT(races(write + "shfl.sync.bfly.b32 %r11, %r1, 1, 31, -1;" + read), Contains("read and write"));
}

TEST_CASE("atomics do not race with each other, and order nothing by themselves", "[ptx]") {
  CHECK(races("red.global.add.u32 [%rd90], 1;") == "");
  CHECK_THAT(races("red.global.add.u32 [%rd90], 1; ld.global.u32 %r8, [%rd90];"), Contains("race"));
  CHECK(races("red.relaxed.gpu.global.add.u32 [%rd90], 1; ld.relaxed.gpu.global.u32 %r8, [%rd90];") == "");
}

TEST_CASE("what is released and acquired is in order", "[ptx]") {
  const std::string released = "st.release.gpu.global.u32 [%rd90], 1;",
                    relaxed = "st.relaxed.gpu.global.u32 [%rd90], 1;";
  const std::string acquire = "$again: ld.acquire.gpu.global.u32 %r10, [%rd90];" + kWait,
                    look = "$again: ld.relaxed.gpu.global.u32 %r10, [%rd90];" + kWait;
  CHECK(races(kOneThread + message(released, acquire)) == "");
  CHECK(races(kOneThread + message("membar.gl;" + relaxed, look + "membar.gl;")) == "");
  CHECK(races(kOneThread + message("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%rd90], 1;", acquire)) == "");
  CHECK_THAT(races(kOneThread + message(relaxed, acquire)), Contains("read and write"));
  CHECK_THAT(races(kOneThread + message(released, look)), Contains("read and write"));
  CHECK_THAT(races(kOneThread + message(relaxed + "membar.gl;", look + "membar.gl;")), Contains("read and write"));
}

TEST_CASE("a fence before a barrier is another's release on GPUs, not by the letter", "[ptx]") {
  // Thread 1 writes; all have a fence, then a barrier; thread 0 sends the message.
  const std::string writes =
      "setp.eq.u32 %p1, %r2, 0; @!%p1 bra $reader; setp.ne.u32 %p2, %r1, 1; @!%p2 st.global.u32 [%rd90+4], 1;";
  const std::string sends =
      "setp.ne.u32 %p3, %r1, 0; @%p3 bra $end; {} red.relaxed.gpu.global.add.u32 [%rd90], 1; bra $end;"
      "$reader: setp.ne.u32 %p3, %r1, 0; @%p3 bra $end;"
      "$again: ld.acquire.gpu.global.u32 %r10, [%rd90]; setp.eq.u32 %p4, %r10, 0; @%p4 bra $again;"
      "ld.global.u32 %r20, [%rd90+4]; $end:";
  const std::string before = writes + "membar.gl; bar.sync 0;" + fmt::format(fmt::runtime(sends), "");
  const std::string after = writes + "bar.sync 0;" + fmt::format(fmt::runtime(sends), "membar.gl;");
  CHECK(races(before, RaceCheck::as_on_gpus) == "");
  CHECK_THAT(races(before, RaceCheck::by_the_letter), Contains("race"));
  CHECK(races(after, RaceCheck::as_on_gpus) == "");
  CHECK(races(after, RaceCheck::by_the_letter) == "");
  CHECK_THAT(races(writes + "bar.sync 0;" + fmt::format(fmt::runtime(sends), "")), Contains("race"));
}
