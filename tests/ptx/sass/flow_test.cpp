// How lanes part and meet: by what the instructions say, never by themselves.
#include <catch.hpp>
#include <cstdint>
#include <numeric>

#include "tests/ptx/sass/small_kernel.h"

using namespace dgc::ptx;
using namespace dgc::ptx::sass;
using Catch::Contains;

namespace {

// Runs it for each of some seeds, with one pointer, to a number for each thread.
std::vector<uint32_t> run_flow(const std::string& text, unsigned threads = 32, unsigned shared_bytes = 0) {
  const Kernel kernel = small_kernel(text, 1, shared_bytes);
  std::vector<uint32_t> first;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<uint32_t> out(threads);
    void* const pointer = out.data();
    launch(kernel, {.block = threads, .seed = seed}, &pointer, sizeof(pointer));
    if (first.empty()) first = out;
    REQUIRE(out == first);
  }
  return first;
}

const std::string kStore =
    "LDC.64 R62, c[0x0][0x210]\nIMAD.WIDE.U32 R62, R60, 0x4, R62\nSTG.E desc[UR4][R62.64], R10\nEXIT\n";

}  // namespace

TEST_CASE("lanes that part meet where BSYNC says so", "[sass]") {
  // Lanes below 8 take another way; then each reads its neighbour.
  const auto text = [](const char* sync) {
    return std::string(
               "S2R R60, SR_TID.X\n"
               "BSSY B0, 0x60\n"
               "ISETP.LT.U32.AND P0, PT, R60, 0x8, PT\n"
               "MOV R1, 0x1\n"
               "@P0 BRA 0x50\n") +
           sync + "\nSHFL.BFLY PT, R10, R60, 0x1f, 0x1f\n" + kStore;
  };
  const auto met = run_flow(text("BSYNC B0"));
  CHECK((met[0] == 31 && met[31] == 0));
  CHECK_THROWS_WITH(run_flow(text("NOP")),
                    Contains("is read, which the mask does not name") && Contains("/*0060*/ SHFL"));
}

TEST_CASE("lanes that break out of a loop are not waited for", "[sass]") {
  // Lane n goes round n times, the last ones leave past the BSYNC.
  const std::string text =
      "S2R R60, SR_TID.X\n"                       // 00
      "MOV R10, RZ\n"                             // 10
      "BSSY B0, 0xa0\n"                           // 20
      "VIADD R10, R10, 0x1\n"                     // 30
      "ISETP.GE.U32.AND P1, PT, R10, 0x1c, PT\n"  // 40
      "@P1 BREAK B0\n"                            // 50
      "@P1 BRA 0xb0\n"                            // 60
      "ISETP.LE.U32.AND P0, PT, R10, R60, PT\n"   // 70
      "@P0 BRA 0x30\n"                            // 80
      "BSYNC B0\n"                                // 90
      "VIADD R10, R10, 0x100\n";                  // a0
  const auto out = run_flow(text + kStore);       // b0
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 27 ? lane + 0x101 : 28));
}

TEST_CASE("who stands alone at BRA.DIV takes the other way", "[sass]") {
  const auto text = [](const char* sync) {
    return std::string("S2R R60, SR_TID.X\nBSSY B0, 0x50\nISETP.LT.U32.AND P0, PT, R60, 0x8, PT\n@P0 BRA 0x40\n") +
           sync + "\nMOV R10, RZ\nUMOV UR4, 0xffffffff\nBRA.DIV UR4, 0x90\nBRA 0xa0\nMOV R10, 0x1\n" + kStore;
  };
  CHECK(run_flow(text("BSYNC B0")) == std::vector<uint32_t>(32, 0));
  CHECK(run_flow(text("NOP")) == std::vector<uint32_t>(32, 1));
}

TEST_CASE("BRA.U is taken by all or by none", "[sass]") {
  const auto text = [](const char* bound) {
    return std::string("S2R R60, SR_TID.X\nMOV R10, RZ\nISETP.LT.U32.AND P0, PT, R60, ") + bound +
           ", PT\n@P0 BRA.U 0x50\nMOV R10, 0x1\n" + kStore;
  };
  CHECK(run_flow(text("0x20")) == std::vector<uint32_t>(32, 0));
  CHECK(run_flow(text("0x1f")) == std::vector<uint32_t>(32, 1));
}

TEST_CASE("a function returns to where each lane called it from", "[sass]") {
  const std::string text =
      "S2R R60, SR_TID.X\n"                                   // 00
      "MOV R5, RZ\n"                                          // 10
      "ISETP.LT.U32.AND P0, PT, R60, 0x8, PT\n"               // 20
      "@P0 BRA 0x80\n"                                        // 30
      "MOV R10, 0x1\n"                                        // 40
      "MOV R4, 0x70\n"                                        // 50
      "CALL.REL.NOINC 0x100\n"                                // 60
      "BRA 0xc0\n"                                            // 70
      "MOV R10, 0x2\n"                                        // 80
      "MOV R4, 0xb0\n"                                        // 90
      "CALL.REL.NOINC 0x100\n"                                // a0
      "VIADD R10, R10, 0x1000\n" +                            // b0
      kStore +                                                // c0
      "IMAD R10, R10, 0x10, R60\nRET.REL.NODEC R4, _test\n";  // 100
  const auto out = run_flow(text);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 8 ? 0x1020 + lane : 0x10 + lane));
  CHECK_THROWS_WITH(run_flow("MOV R4, 0x5000\nMOV R5, RZ\nRET.REL.NODEC R4, _test\n"), Contains("a jump to 0x5000"));
}

TEST_CASE("a barrier takes whole warps, and shared memory lies behind the system's", "[sass]") {
  const auto text = [](const char* meet) {
    return std::string("S2R R60, SR_TID.X\nISETP.LT.U32.AND P0, PT, R60, 0x8, PT\n@P0 BRA 0x30\n") + meet +
           "\nLEA R1, R60, 0x400, 0x2\nSTS [R1], R60\n" + meet + "\nBAR.SYNC.DEFER_BLOCKING 0x0\n" +
           "LOP3.LUT R2, R1, 0xfc, RZ, 0x3c, !PT\nLDS R10, [R2]\n" + kStore;
  };
  const auto out = run_flow(text("WARPSYNC.ALL"), 64, 0x400 + 4 * 64);
  for (uint32_t thread = 0; thread < 64; ++thread) CHECK(out[thread] == 63 - thread);
  CHECK_THROWS_WITH(run_flow(text("NOP"), 64, 0x400 + 4 * 64), Contains("without the rest of their warp"));
}

TEST_CASE("registers of the warp are one number for all lanes", "[sass]") {
  CHECK(run_flow("S2R R60, SR_TID.X\nS2UR UR6, SR_CTAID.X\nUIADD3 UR6, UR6, 0x7, URZ\nMOV R10, UR6\n" + kStore) ==
        std::vector<uint32_t>(32, 7));
  CHECK(
      run_flow("S2R R60, SR_TID.X\nISETP.LT.U32.AND P0, PT, R60, 0x3, PT\nVOTEU.ANY UR6, UPT, P0\nREDUX.MAX UR7, R60\n"
               "UIADD3 UR6, UR6, UR7, URZ\nMOV R10, UR6\n" +
               kStore) == std::vector<uint32_t>(32, 7 + 31));
  CHECK_THROWS_WITH(run_flow("S2R R60, SR_TID.X\nR2UR UR6, R60\nEXIT\n"), Contains("lanes differ"));
}

TEST_CASE("what some lanes put into a register of the warp, they read before others go on", "[sass]") {
  const auto out = run_flow(
      "S2R R60, SR_TID.X\nISETP.LT.U32.AND P0, PT, R60, 0x8, PT\n@P0 BRA 0x60\nUMOV UR6, 0x1\nMOV R10, UR6\nBRA 0x80\n"
      "UMOV UR6, 0x2\nMOV R10, UR6\n" +
      kStore);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 8 ? 2 : 1));
}

TEST_CASE("an atomic of 64 bits that compares says whether it has written", "[sass]") {
  // All threads count in shared memory, which thread 0 has set to 2^32 - 5 before.
  const std::string text =
      "S2R R60, SR_TID.X\n"                           // 00
      "ISETP.NE.AND P0, PT, R60, RZ, PT\n"            // 10
      "MOV R1, 0x400\n"                               // 20
      "MOV R2, 0xfffffffb\n"                          // 30
      "MOV R3, RZ\n"                                  // 40
      "@!P0 STS.64 [R1], R2\n"                        // 50
      "BAR.SYNC.DEFER_BLOCKING 0x0\n"                 // 60
      "BSSY B0, 0x100\n"                              // 70
      "LDS.64 R4, [R1]\n"                             // 80
      "IADD3 R6, P1, R4, 0x1, RZ\n"                   // 90
      "IADD3.X R7, R5, RZ, RZ, P1, !PT\n"             // a0
      "ATOMS.CAST.SPIN.64 R8, [R1], R4, R6\n"         // b0
      "ISETP.EQ.U32.AND P1, PT, R8, 0x1, PT\n"        // c0
      "ISETP.EQ.U32.AND.EX P1, PT, R9, RZ, PT, P1\n"  // d0
      "@!P1 BRA 0x80\n"                               // e0
      "BSYNC B0\n"                                    // f0
      "BAR.SYNC.DEFER_BLOCKING 0x0\n"                 // 100
      "LDS.64 R10, [R1]\n"                            // 110
      "IMAD R10, R11, 0x10000, R10\n" +               // 120
      kStore;
  CHECK(run_flow(text, 64, 0x408) == std::vector<uint32_t>(64, 0x10000 + 59));
}
