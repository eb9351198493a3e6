#include <catch.hpp>
#include <cstdint>

#include "tests/ptx/small_kernel.h"

using namespace dgc::ptx;
using Catch::Contains;

namespace {

void run(const std::string& body, void* pointer) { SmallKernel(body, 1).run({.block = 1}, {pointer}); }

}  // namespace

TEST_CASE("loads and stores of all sizes, and of vectors", "[ptx]") {
  alignas(16) uint32_t memory[8] = {0xffff80ffu, 2, 3, 4, 0, 0, 0, 0};
  run("ld.global.s8 %r1, [%rd90]; ld.global.u8 %rs2, [%rd90+1]; ld.global.s16 %r3, [%rd90]; cvt.u32.u16 %r2, %rs2;"
      "st.global.v2.u32 [%rd90+16], {%r1, %r2}; st.global.u32 [%rd90+24], %r3;",
      memory);
  CHECK(memory[4] == ~0u);
  CHECK(memory[5] == 0x80);
  CHECK(memory[6] == 0xffff80ffu);
  run("ld.global.nc.L1::no_allocate.v4.b32 {%r1, %r2, %r3, %r4}, [%rd90]; st.global.v4.b32 [%rd90+16], {%r4, %r3, %r2, "
      "7};",
      memory);
  CHECK(memory[4] == 4);
  CHECK(memory[6] == 2);
  CHECK(memory[7] == 7);
  run("ld.global.s32 %rd1, [%rd90]; st.global.u64 [%rd90+8], %rd1; st.global.b8 [%rd90], 5;", memory);
  CHECK(memory[3] == ~0u);
  CHECK(memory[0] == 0xffff8005u);
}

TEST_CASE("local memory, parameters and constants have generic addresses", "[ptx]") {
  uint64_t memory[2] = {0, 0};
  run(".local .align 8 .b8 mine[16]; mov.b64 %rd1, mine; cvta.local.u64 %rd2, %rd1; st.local.u64 [%rd1+8], %rd90;"
      "ld.u64 %rd3, [%rd2+8]; st.global.u64 [%rd90], %rd3;"
      "mov.b64 %rd4, p0; cvta.param.u64 %rd5, %rd4; ld.u64 %rd6, [%rd5]; st.global.u64 [%rd90+8], %rd6;",
      memory);
  CHECK(memory[0] == reinterpret_cast<uint64_t>(memory));
  CHECK(memory[1] == reinterpret_cast<uint64_t>(memory));
}

TEST_CASE("arrays outside of entries hold what is written", "[ptx]") {
  const Module module(
      "constants.ptx",
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".global .align 4 .b8 table[8] = {1, 0, 0, 0, 0xFF};\n"
      ".visible .entry test(\n.param .u64 p0\n)\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n"
      "ld.param.u64 %rd1, [p0];\nmov.b64 %rd2, table;\nld.global.u32 %r1, [%rd2+4];\nld.global.u32 %r2, [table];\n"
      "st.global.v2.u32 [%rd1], {%r1, %r2};\nret;\n}\n");
  const Kernel kernel = make_kernel(module.parse("test"));
  uint64_t out = 0;
  void* pointer = &out;
  launch(kernel, {}, &pointer, sizeof(pointer));
  CHECK(out == (uint64_t{1} << 32 | 0xff));
}

TEST_CASE("atomics", "[ptx]") {
  int32_t memory[4] = {5, 6, 7, 0};
  run("atom.add.global.u32 %r1, [%rd90], 3; atom.global.max.s32 %r2, [%rd90], -2; red.global.min.s32 [%rd90], -4;"
      "atom.global.exch.b32 %r3, [%rd90+4], %r1; atom.global.cas.b32 %r4, [%rd90+8], 7, 70;"
      "atom.global.cas.b32 %r5, [%rd90+8], 7, 71; atom.global.or.b32 %r6, [%rd90+12], 9;",
      memory);
  CHECK(memory[0] == -4);
  CHECK(memory[1] == 5);
  CHECK(memory[2] == 70);
  CHECK(memory[3] == 9);
}

TEST_CASE("what lies outside, or nowhere, is an error that names the thread", "[ptx]") {
  uint64_t memory[2] = {};
  const std::string shared = ".shared .align 8 .b8 room[16]; ";
  CHECK_THROWS_WITH(run(shared + "ld.shared.u32 %r1, [room];", memory),
                    Contains("nobody has written") && Contains("thread 0"));
  CHECK_THROWS_WITH(run(shared + "st.shared.u32 [room+16], 1;", memory), Contains("outside of a space of 16 bytes"));
  CHECK_THROWS_WITH(run(".local .align 8 .b8 mine[8]; st.local.v2.u32 [mine+8], {1, 2};", memory), Contains("outside"));
  CHECK_THROWS_WITH(run("ld.param.u64 %rd1, [p0+8];", memory), Contains("outside"));
  CHECK_THROWS_WITH(run("st.global.u64 [%rd90+4], %rd90;", memory), Contains("not aligned to 8 bytes"));
  CHECK_THROWS_WITH(run("mov.u64 %rd1, 8; st.global.u64 [%rd1], %rd90;", memory),
                    Contains("no address of global memory"));
  CHECK_THROWS_WITH(run("trap;", memory), Contains("trapped"));
}

TEST_CASE("what is not known is an error that names the file and the line", "[ptx]") {
  const auto bad = [](const std::string& body) { const SmallKernel kernel(body, 0); };
  CHECK_THROWS_WITH(bad("frobnicate.u32 %r1, %r2;"),
                    Contains("test.ptx:10") && Contains("not known in 'frobnicate.u32 %r1, %r2'"));
  CHECK_THROWS_WITH(bad("add.cc.u32 %r1, %r2, %r3;"), Contains("not known"));
  CHECK_THROWS_WITH(bad("add.f32 %r1, %r2, %r3;"), Contains("may fuse"));
  CHECK_THROWS_WITH(bad("add.u64 %rd1, %rd2, %r3;"), Contains("%r3 has 32 bits, not 64"));
  CHECK_THROWS_WITH(bad("bra $nowhere;"), Contains("nothing is called '$nowhere'"));
  CHECK_THROWS_WITH(bad("bar.sync 1;"), Contains("not known"));
  CHECK_THROWS_WITH(bad("add.u32 %r1, %r2"), Contains("test.ptx:"));
}
