#include "kernels/wire_codes.h"

#include <catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/all_of.h"

using namespace dgc;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kMax = std::numeric_limits<float>::max();

float sent_as(WireValues values, float v, float scale = 1) {
  return value_of(values, value_code(values, v, scale), scale);
}

// Numbers of every size, many with few bits set, so that ties come up; and the places where a rule changes.
std::vector<float> hard_numbers() {
  std::vector<float> all = {0.f,         -0.f,           65504.f,    65519.99f, 65520.f,   -65520.f,  0x1p29f,
                            -0x1p29f,    0x1.fffffep28f, kMax,       -kMax,     0x1p127f,  0x1p-149f, 0x1p-126f,
                            0x1p-24f,    0x1p-25f,       0x1.8p-25f, 1.5f,      0x1.01p0f, 0x1.03p0f, 0x1.fep127f,
                            0x1.ffp127f, 0x1.feffp127f,  127.f,      126.5f,    0.5f,      0.50001f};
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 3 == 0) bits &= 0xffff8000u;
    if (i % 3 == 1) bits &= 0xfffff000u;
    const float v = std::bit_cast<float>(bits);
    if (std::isfinite(v)) all.push_back(v);
  }
  return all;
}

// The nearest number with 8 significant bits, ties to even, by arithmetic in double.
double to_eight_bits(double v) {
  int exponent = 0;
  std::frexp(v, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - 8, -133));
  return std::nearbyint(v / step) * step;
}

}  // namespace

TEST_CASE("what rounding takes away is exact, in every format", "[wire]") {
  for (const float v : hard_numbers()) {
    // As if |v| were the tensor's largest, or a little or very much smaller than that.
    for (const float largest :
         {std::fabs(v), std::min(kMax, 3.3f * std::fabs(v)), std::min(kMax, 1e6f * std::fabs(v))}) {
      const float scale = int8_scale(largest);
      for (const auto values : test::all_of<WireValues>()) {
        CAPTURE(v, values, scale);
        const float sent = sent_as(values, v, scale), rest = v - sent;
        REQUIRE(double{rest} == double{v} - double{sent});
        REQUIRE(std::fabs(rest) <= std::fabs(v));
        REQUIRE(sent + rest == v);
        // What has been rounded is a number of the format.
        REQUIRE(std::bit_cast<uint32_t>(sent_as(values, sent, scale)) == std::bit_cast<uint32_t>(sent));
      }
    }
  }
}

TEST_CASE("fp16: to nearest even, at most 65504, and nothing from 2^29 on", "[wire]") {
  for (const float v : hard_numbers()) {
    float want = half_to_float(float_to_half(v));
    if (std::fabs(v) > 65504) want = std::copysign(65504.f, v);
    if (std::fabs(v) >= 0x1p29f) want = 0;
    REQUIRE(sent_as(WireValues::fp16, v) == want);
  }
}

TEST_CASE("bf16: to nearest even, at most the largest finite one", "[wire]") {
  const double largest = 0x1.fep127;
  for (const float v : hard_numbers()) {
    const double want = std::copysign(std::min(std::fabs(to_eight_bits(v)), largest), v);
    CAPTURE(v);
    REQUIRE(double{sent_as(WireValues::bf16, v)} == want);
  }
  CHECK(bf16_code(1.f) == 0x3f80);
  CHECK(bf16_code(1.f + 0x1p-8f) == 0x3f80);  // ties
  CHECK(bf16_code(1.f + 3 * 0x1p-8f) == 0x3f82);
  CHECK(bf16_code(-kMax) == 0xff7f);
}

TEST_CASE("int8: steps of a scale of 8 bits that lets the largest be said", "[wire]") {
  CHECK(int8_scale(127) == 1);
  CHECK(int8_scale(127.001f) == 1 + 0x1p-7f);  // rounded up: 127 steps must reach it
  CHECK(int8_scale(0) == 0x1p-126f);
  CHECK(int8_scale(kMax) == 0x1p120f);
  for (const float largest : hard_numbers()) {
    const float scale = int8_scale(std::fabs(largest));
    REQUIRE((std::bit_cast<uint32_t>(scale) & 0xffffu) == 0);
    REQUIRE((scale == 0x1p120f || 127 * double{scale} >= std::fabs(largest) * (1 - 0x1p-23)));
    REQUIRE((scale == 0x1p-126f || 127 * double{scale} <= std::fabs(largest) * (1 + 0x1p-6)));
  }
  const auto code = [](float v) { return static_cast<int>(static_cast<int8_t>(int8_code(v, 0.5f))); };
  CHECK((code(0) == 0 && code(0.25f) == 0 && code(0.26f) == 1 && code(-0.26f) == -1 && code(0.75f) == 2));
  CHECK((code(63.5f) == 127 && code(1e30f) == 127 && code(-1e30f) == -127));
  CHECK(value_of(WireValues::int8, 0xfd, 0.5f) == -1.5f);
}

TEST_CASE("what is not finite travels as such, and any code means something", "[wire]") {
  const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
  for (const auto values : {WireValues::fp32, WireValues::fp16, WireValues::bf16}) {
    CHECK(sent_as(values, kInf) == kInf);
    CHECK(sent_as(values, -kInf) == -kInf);
    for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
      CHECK(bits(sent_as(values, std::bit_cast<float>(nan))) == kWireNan);
      CHECK(bits(value_of(values, values == WireValues::fp32 ? nan : 0xffffu, 1)) == kWireNan);
    }
  }
  for (const float v : {kInf, -kInf, std::nanf("")}) CHECK(bits(sent_as(WireValues::int8, v)) == kWireNan);
  CHECK(bits(value_of(WireValues::int8, 0, kInf)) == kWireNan);  // 0 times a scale that nobody sends
}

TEST_CASE("bits are read across words, and not beyond the last", "[wire]") {
  const std::vector<uint32_t> words = {0x89abcdefu, 0x01234567u};
  CHECK(bits_at(words.data(), 0, 4) == 0xf);
  CHECK(bits_at(words.data(), 4, 8) == 0xde);
  CHECK(bits_at(words.data(), 28, 8) == 0x78);
  CHECK(bits_at(words.data(), 31, 31) == 0x02468acfu);
  CHECK(bits_at(words.data(), 33, 31) == 0x01234567u >> 1);
  CHECK(bits_at(words.data(), 64, 0) == 0);
}
