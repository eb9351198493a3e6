// Single instructions, and short rows of them that belong together, beside what C++ computes.
#include <bit>
#include <catch.hpp>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/sass/small_kernel.h"

using namespace dgc::ptx;
using namespace dgc::ptx::sass;
using Catch::Contains;

namespace {

const std::vector<uint32_t> kNumbers{0,          1,          2,          7,          31,         32,         0x80,
                                     0xff,       0x7fff,     0x8000,     0xffff,     0x10000,    0x12345678, 0x7fffffff,
                                     0x80000000, 0x80000001, 0x9abcdef0, 0xfffffffe, 0xffffffff, 5,          63};
const std::vector<float> kFloats{0.f,       -0.f,         1.f,      -1.5f,           3.1415927f, 1e-40f, -2e-45f,
                                 0x1p-126f, -0x1.8p-126f, 65504.f,  1e30f,           -3e38f,     1e-20f, 7.f,
                                 INFINITY,  -INFINITY,    0.99999f, 0x1.fffffep+23f, 4294967e3f, -5.f,   NAN};

uint64_t pair(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }

float canonical_nan(float value) { return value != value ? std::bit_cast<float>(0x7fffffffu) : value; }
float flushed_to_zero(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.f, value) : value; }

}  // namespace

TEST_CASE("sums of 64 bits carry, and differences borrow", "[sass]") {
  // R2:R1 + R1:R2, R2:R1 - R1:R2, and R2:R1 + 2^32 + (2^32 - 1) with both carries.
  CHECK(same_as<uint32_t>("IADD3 R9, P1, R1, R2, RZ\nIADD3.X R10, R2, R1, RZ, P1, !PT", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(pair(a, b) + pair(b, a)); }));
  CHECK(same_as<uint32_t>("IADD3 R9, P1, R1, -R2, RZ\nIADD3.X R10, R2, ~R1, RZ, P1, !PT", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(pair(a, b) - pair(b, a)); }));
  CHECK(same_as<uint32_t>("IADD3 R9, P1, RZ, -R1, RZ\nIMAD.X R10, RZ, RZ, ~R2, P1", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(0 - pair(a, b)); }));
  CHECK(same_as<uint32_t>("IADD3 R9, P1, P2, R1, R2, R1\nIADD3.X R10, RZ, R2, RZ, P1, P2", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(pair(a, b) + uint64_t{b} + a); }));
  CHECK(same_as<uint32_t>("IADD3 R10, R1, -0x30, -R2", kNumbers, [](uint32_t a, uint32_t b) { return a - 48 - b; }));
}

TEST_CASE("products have 32, 64 and 128 bits", "[sass]") {
  CHECK(same_as<uint32_t>("IMAD R10, R1, -0x7, R2", kNumbers, [](uint32_t a, uint32_t b) { return b - 7 * a; }));
  CHECK(same_as<uint32_t>("IMAD.WIDE.U32 R10, R1, R2, RZ\nMOV R10, R11", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(uint64_t{a} * b); }));
  CHECK(same_as<uint32_t>("IMAD.WIDE R10, R1, R2, RZ\nMOV R10, R11", kNumbers, [](uint32_t a, uint32_t b) {
    return high(static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b)));
  }));
  CHECK(same_as<uint32_t>("MOV R3, RZ\nIMAD.HI.U32 R10, R1, R2, R2", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(uint64_t{a} * b + b); }));
  // The upper half of (R2:R1)^2, as ptxas multiplies numbers of 64 bits.
  CHECK(
      same_as<uint32_t>("IMAD.WIDE.U32 R4, R2, R1, RZ\nIMAD.WIDE.U32 R6, P0, R1, R2, R4\nIMAD.WIDE.U32 R4, R1, R1, RZ\n"
                        "IADD3 RZ, P1, R5, R6, RZ\nIMAD.X R9, RZ, RZ, RZ, P0\nIMAD.MOV.U32 R8, RZ, RZ, R7\n"
                        "IMAD.WIDE.U32.X R10, R2, R2, R8, P1",
                        kNumbers, [](uint32_t a, uint32_t b) {
                          __extension__ using Wide = unsigned __int128;
                          return low(static_cast<uint64_t>(Wide{pair(a, b)} * pair(a, b) >> 64));
                        }));
}

TEST_CASE("shifts clamp or wrap, and take either half", "[sass]") {
  const auto by = [](uint32_t n) { return std::min(n, 32u); };
  CHECK(same_as<uint32_t>("SHF.L.U32 R10, R1, R2, RZ", kNumbers,
                          [&](uint32_t a, uint32_t n) { return low(uint64_t{a} << by(n)); }));
  CHECK(same_as<uint32_t>("SHF.R.U32.HI R10, RZ, R2, R1", kNumbers,
                          [&](uint32_t a, uint32_t n) { return low(uint64_t{a} >> by(n)); }));
  CHECK(same_as<int32_t>("SHF.R.S32.HI R10, RZ, R2, R1", kNumbers,
                         [&](uint32_t a, uint32_t n) { return static_cast<int32_t>(a) >> std::min(n, 31u); }));
  CHECK(same_as<uint32_t>("SHF.L.W.U32.HI R10, R1, 0x7, R2", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(pair(a, b) << 7); }));
  CHECK(same_as<uint32_t>("SHF.L.U64.HI R10, R1, 0x9, R2", kNumbers,
                          [](uint32_t a, uint32_t b) { return high(pair(a, b) << 9); }));
  CHECK(same_as<uint32_t>("SHF.R.U64 R10, R1, 0x9, R2", kNumbers,
                          [](uint32_t a, uint32_t b) { return low(pair(a, b) >> 9); }));
  CHECK(same_as<uint32_t>("SHF.R.S64 R10, R2, 0x9, R1", kNumbers, [](uint32_t a, uint32_t b) {
    return low(static_cast<uint64_t>(static_cast<int64_t>(pair(b, a)) >> 9));
  }));
}

TEST_CASE("addresses are shifted and added", "[sass]") {
  CHECK(same_as<uint32_t>("LEA R9, P1, R1, R2, 0x3\nLEA.HI.X R10, R1, R1, R2, 0x3, P1", kNumbers,
                          [](uint32_t a, uint32_t b) { return high((pair(a, b) << 3) + pair(b, a)); }));
  CHECK(same_as<uint32_t>(
      "LEA R9, P1, R1, R2, 0x3\nLEA.HI.X.SX32 R10, R1, RZ, 0x3, P1", kNumbers,
      [](uint32_t a, uint32_t b) { return high((static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)}) << 3) + b); }));
  CHECK(same_as<uint32_t>("LEA R9, P1, -R1, R2, 0x12\nIADD3.X R10, RZ, RZ, RZ, P1, !PT", kNumbers,
                          [](uint32_t a, uint32_t b) { return b >= (a << 18) ? 1u : 0u; }));
  CHECK(
      same_as<uint32_t>("LEA.HI R10, R1, R2, RZ, 0x1e", kNumbers, [](uint32_t a, uint32_t b) { return (a >> 2) + b; }));
}

TEST_CASE("bits are combined by a table, permuted and counted", "[sass]") {
  CHECK(same_as<uint32_t>("LOP3.LUT R10, R1, R2, 0xff00ff, 0xca, !PT", kNumbers,
                          [](uint32_t a, uint32_t b) { return (a & b) | (~a & 0xff00ff); }));
  CHECK(same_as<uint32_t>("LOP3.LUT P1, RZ, R1, R2, RZ, 0xc0, !PT\nSEL R10, R1, 0x5, P1", kNumbers,
                          [](uint32_t a, uint32_t b) { return (a & b) != 0 ? a : 5; }));
  CHECK(same_as<uint32_t>("PRMT R10, R1, 0x9526, R2", kNumbers, [](uint32_t a, uint32_t b) {
    const uint32_t sign = (a & 0x8000) != 0 ? 0xff : 0;  // of byte 1
    return sign << 24 | (b >> 8 & 0xff) << 16 | (a >> 16 & 0xff) << 8 | (b >> 16 & 0xff);
  }));
  CHECK(
      same_as<uint32_t>("POPC R3, R1\nBREV R4, R2\nFLO.U32 R5, R1\nFLO.U32.SH R6, R2\nIADD3 R10, R3, R4, R5\n"
                        "IADD3 R10, R10, R6, RZ",
                        kNumbers, [](uint32_t a, uint32_t b) {
                          uint32_t reversed = 0;
                          for (int i = 0; i < 32; ++i) reversed |= (b >> i & 1) << (31 - i);
                          const uint32_t top = a == 0 ? ~0u : static_cast<uint32_t>(31 - std::countl_zero(a));
                          const uint32_t shift = b == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(b));
                          return static_cast<uint32_t>(std::popcount(a)) + reversed + top + shift;
                        }));
}

TEST_CASE("numbers of 64 bits compare, with signs and without", "[sass]") {
  const std::string number = "SEL R10, RZ, 0x1, !P2";
  CHECK(same_as<uint32_t>("ISETP.GE.U32.AND P1, PT, R1, R2, PT\nISETP.GE.AND.EX P2, PT, R2, R1, PT, P1\n" + number,
                          kNumbers, [](uint32_t a, uint32_t b) {
                            return static_cast<int64_t>(pair(a, b)) >= static_cast<int64_t>(pair(b, a)) ? 1u : 0u;
                          }));
  CHECK(same_as<uint32_t>("ISETP.LT.U32.AND P1, PT, R1, R2, PT\nISETP.LT.U32.AND.EX P2, PT, R2, R1, PT, P1\n" + number,
                          kNumbers, [](uint32_t a, uint32_t b) { return pair(a, b) < pair(b, a) ? 1u : 0u; }));
  CHECK(same_as<uint32_t>("ISETP.NE.AND P1, PT, R1, 0x7, PT\nISETP.NE.AND.EX P2, PT, R2, RZ, PT, P1\n" + number,
                          kNumbers, [](uint32_t a, uint32_t b) { return pair(a, b) != 7 ? 1u : 0u; }));
  CHECK(same_as<uint32_t>(
      "ISETP.GT.AND P1, P2, R1, R2, PT\nISETP.EQ.OR P2, PT, R1, 0x5, P2\n" + number, kNumbers,
      [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) <= static_cast<int32_t>(b) || a == 5 ? 1u : 0u; }));
  CHECK(same_as<uint32_t>(
      "ISETP.NE.AND P0, PT, R1, RZ, PT\nISETP.LT.AND P1, PT, R2, RZ, PT\n"
      "PLOP3.LUT P2, PT, P0, P1, PT, 0x8a, 0x0\nP2R.PR R3, RZ, 0x3\nLOP3.LUT R10, R3, 0x100, RZ, 0xfc, !PT\n"
      "@P2 VIADD R10, R10, 0x200",
      kNumbers, [](uint32_t a, uint32_t b) {
        const bool p = a != 0, q = b >> 31 != 0;  // 0x8a: of 7, 3 and 1 (a:b:c), and c is true
        const unsigned at = (p ? 4u : 0u) | (q ? 2u : 0u) | 1u;
        return (p ? 1u : 0u) + (q ? 2u : 0u) + 0x100 + ((0x8a >> at & 1) != 0 ? 0x200 : 0);
      }));
  CHECK(same_as<uint32_t>("VIMNMX.U32 R3, R1, R2, PT\nVIADDMNMX R10, R3, 0x1, R2, !PT", kNumbers,
                          [](uint32_t a, uint32_t b) {
                            const auto least = static_cast<int32_t>(std::min(a, b) + 1);
                            return static_cast<uint32_t>(std::max(least, static_cast<int32_t>(b)));
                          }));
}

TEST_CASE("floats round, flush and compare as on a GPU", "[sass]") {
  CHECK(same_as<float>("FADD R10, R1, -R2", kFloats, [](float a, float b) { return canonical_nan(a - b); }));
  CHECK(
      same_as<float>("FMUL R10, |R1|, R2", kFloats, [](float a, float b) { return canonical_nan(std::fabs(a) * b); }));
  CHECK(same_as<float>("FFMA R10, R1, R2, 0.5", kFloats,
                       [](float a, float b) { return canonical_nan(std::fma(a, b, 0.5f)); }));
  CHECK(same_as<float>("FADD.FTZ R10, R1, R2", kFloats, [](float a, float b) {
    return canonical_nan(flushed_to_zero(flushed_to_zero(a) + flushed_to_zero(b)));
  }));
  CHECK(same_as<float>("FMNMX R10, R1, R2, PT", std::vector<float>{1, -2, 0.5f, 7},
                       [](float a, float b) { return std::min(a, b); }));
  CHECK(same_as<float>("FMNMX R10, R1, R2, !PT", std::vector<float>{1, NAN, 7},
                       [](float a, float b) { return canonical_nan(std::fmax(a, b)); }));
  const std::string number = "\nSEL R10, RZ, 0x1, !P1";
  CHECK(same_as<uint32_t>("FSETP.GEU.AND P1, PT, R1, R2, PT" + number, kFloats,
                          [](float a, float b) { return !(a < b) ? 1u : 0u; }));
  CHECK(same_as<uint32_t>("FSETP.NEU.FTZ.AND P1, PT, R1, R2, PT" + number, kFloats,
                          [](float a, float b) { return !(flushed_to_zero(a) == flushed_to_zero(b)) ? 1u : 0u; }));
  CHECK(same_as<uint32_t>("FSETP.NAN.AND P1, PT, R1, R2, PT" + number, kFloats,
                          [](float a, float b) { return a != a || b != b ? 1u : 0u; }));
}

TEST_CASE("sums round as the modifier says", "[sass]") {
  const auto toward = [](int mode, float a, float b) {
    std::fesetround(mode);
    volatile float x = a, y = b;
    volatile float product = std::fma(x, y, 1.f);
    std::fesetround(FE_TONEAREST);
    return canonical_nan(product);
  };
  CHECK(same_as<float>("FFMA.RM R10, R1, R2, 1", kFloats, [&](float a, float b) { return toward(FE_DOWNWARD, a, b); }));
  CHECK(same_as<float>("FFMA.RP R10, R1, R2, 1", kFloats, [&](float a, float b) { return toward(FE_UPWARD, a, b); }));
  CHECK(
      same_as<float>("FFMA.RZ R10, R1, R2, 1", kFloats, [&](float a, float b) { return toward(FE_TOWARDZERO, a, b); }));
}

TEST_CASE("integers become floats and floats integers", "[sass]") {
  CHECK(same_as<float>("I2F.S64 R10, R1", std::vector<uint32_t>{5, 0x7fffffff, 0xfffffff0},
                       [](uint32_t a, uint32_t b) { return static_cast<float>(static_cast<int64_t>(pair(a, b))); }));
  CHECK(same_as<float>("I2F.U16 R3, R1\nI2F.S8 R4, R2\nFADD R10, R3, R4", kNumbers, [](uint32_t a, uint32_t b) {
    return static_cast<float>(a & 0xffff) + static_cast<float>(static_cast<int8_t>(b));
  }));
  CHECK(apply<float>("I2F.U32.RP R10, R1", std::vector<uint32_t>{16777217, 3, 0xffffffff}) ==
        std::vector<float>{16777218, 3, 0x1p32f});
  CHECK(apply<float>("I2F.RP R10, R1", std::vector<uint32_t>{16777217, 0xffffffff}) ==
        std::vector<float>{16777218, -1});
  CHECK(apply<uint32_t>("F2I.FTZ.U32.TRUNC.NTZ R10, R1", std::vector<float>{3.9f, -1, 5e9f, NAN, 1e-40f}) ==
        std::vector<uint32_t>{3, 0, 0xffffffff, 0, 0});
  CHECK(apply<uint32_t>("F2I.U64.TRUNC R10, R1\nMOV R10, R11", std::vector<float>{0x1.8p33f, 7, 1e30f}) ==
        std::vector<uint32_t>{3, 0, 0xffffffff});
  CHECK(apply<uint32_t>("F2I.S64.TRUNC R10, R1\nMOV R10, R11", std::vector<float>{-0x1.8p33f, 7, -1e30f, NAN}) ==
        std::vector<uint32_t>{0xfffffffd, 0, 0x80000000, 0x80000000});
  CHECK(apply<uint32_t>("IABS R10, R1", std::vector<uint32_t>{7, 0xfffffff9, 0x80000000}) ==
        std::vector<uint32_t>{7, 7, 0x80000000});
  CHECK(apply<uint32_t>("HFMA2.MMA R10, -RZ, RZ, 1.875, -2", std::vector<uint32_t>{0}) ==
        std::vector<uint32_t>{0x3f80c000});
}

TEST_CASE("an instruction that is not known is named, never passed over", "[sass]") {
  CHECK_THROWS_WITH(small_kernel("FROB R1, R2", 0),
                    Contains("test.cubin") && Contains("not known") && Contains("FROB R1,R2"));
  CHECK_THROWS_WITH(small_kernel("IADD3.FUNNY R1, R2, R3, RZ", 0), Contains(".FUNNY") && Contains("IADD3.FUNNY"));
  CHECK_THROWS_WITH(small_kernel("IADD3 R1, R2, R3, RZ, R5", 0), Contains("too many operands"));
  CHECK_THROWS_WITH(small_kernel("IADD3 R1, R2, R3", 0), Contains("too few operands"));
  CHECK_THROWS_WITH(small_kernel("UIADD3 UR1, R2, UR3, URZ", 0), Contains("not uniform"));
  CHECK_THROWS_WITH(small_kernel("MOV R1, c[0x0][0x20]", 0), Contains("0x20"));
  CHECK_THROWS_WITH(small_kernel("MOV R1, c[0x3][0x20]", 0), Contains("c[0x3][0x20]"));
  CHECK_THROWS_WITH(small_kernel("BRA 0x50", 0), Contains("a branch to 0x50"));
  CHECK_THROWS_WITH(small_kernel("FSEL R1, R2, +QNAN, P0", 0),
                    Contains("which the machine code") || Contains("machine code must say which"));
}
