// What is counted of a launch, in programs whose counts are known.
#include <catch.hpp>
#include <cstdint>

#include "tests/ptx/small_kernel.h"

using namespace dgc::ptx;

namespace {

std::vector<Counts> count(const std::string& body, const Launch& how = {}) {
  alignas(32) static std::array<uint32_t, 1024> memory;
  const SmallKernel kernel(
      "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1; shl.b64 %rd2, %rd1, 2; add.u64 %rd2, %rd2, %rd90;"
      "shl.b64 %rd4, %rd1, 4; add.u64 %rd4, %rd4, %rd90;" +
          body,
      1);
  std::vector<Counts> counts;
  Launch counted = how;
  counted.counts = &counts;
  kernel.run(counted, {memory.data()});
  return counts;
}

}  // namespace

TEST_CASE("accesses are counted by warps, in bytes and in sectors of 32", "[ptx]") {
  const Counts words = count("ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd2+128], %r2;").at(0);
  CHECK((words.loads == 1 && words.loaded_bytes == 128 && words.loaded_sectors == 4));
  CHECK((words.stores == 1 && words.stored_bytes == 128 && words.stored_sectors == 4));
  CHECK((words.loads_128 == 0 && words.stores_128 == 0));

  const Counts vectors = count("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4];").at(0);
  CHECK((vectors.loads == 1 && vectors.loads_128 == 1 && vectors.loaded_bytes == 512 && vectors.loaded_sectors == 16));

  const Counts scattered = count("shl.b64 %rd5, %rd1, 6; add.u64 %rd5, %rd5, %rd90; ld.global.u8 %r2, [%rd5];").at(0);
  CHECK((scattered.loads == 1 && scattered.loaded_bytes == 32 && scattered.loaded_sectors == 32));

  const Counts some = count("setp.lt.u32 %p1, %r1, 3; @%p1 ld.global.u32 %r2, [%rd2];").at(0);
  CHECK((some.loads == 1 && some.loaded_bytes == 12 && some.loaded_sectors == 1));
}

TEST_CASE("local memory, atomics and barriers are counted", "[ptx]") {
  const Counts local =
      count(".local .align 4 .b8 own[4]; mov.u64 %rd6, own; st.local.u32 [%rd6], %r1; ld.local.u32 %r2, [%rd6];").at(0);
  CHECK((local.local == 2 && local.loads == 0 && local.stores == 0));
  const Counts others =
      count(
          ".shared .align 4 .b8 room[4]; st.shared.u32 [room], 1; bar.sync 0; red.shared.add.u32 [room], 1;"
          "red.global.add.u32 [%rd90], 1;",
          {.grid = 3, .block = 64})
          .at(0);
  CHECK((others.global_atomics == 192 && others.shared_atomics == 192 && others.barriers == 3));
  CHECK((others.loads == 0 && others.stores == 0));
}

TEST_CASE("instructions of warps are counted, those of lanes that part more than once", "[ptx]") {
  const uint64_t none = count("").at(0).instructions;
  CHECK(count("", {.grid = 2, .block = 96}).at(0).instructions == 6 * none);
  CHECK(count("add.u32 %r2, %r1, 1;").at(0).instructions == none + 1);
  // The comparison and the branch, two additions on one way and one on the other, and a branch behind the first.
  const std::string parts =
      "setp.lt.u32 %p1, %r1, 7; @%p1 bra $few; add.u32 %r2, %r1, 1; add.u32 %r2, %r1, 1; bra $end;"
      "$few: add.u32 %r2, %r1, 3; $end:";
  for (uint64_t seed = 0; seed < 20; ++seed) CHECK(count(parts, {.seed = seed}).at(0).instructions == none + 6);
}
