#include <catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/apply.h"

using namespace dgc::ptx;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kGpuNan = std::bit_cast<float>(0x7fffffffu);

template <typename T>
std::vector<T> floats() {
  using Limits = std::numeric_limits<T>;
  return {T{0},
          -T{0},
          T{1},
          T{-1},
          T{3},
          T(0.1),
          T(1.5),
          T(2.5),
          T(-2.5),
          T(1e30),
          T(1e-30),
          Limits::max(),
          Limits::min(),
          Limits::denorm_min(),
          -Limits::min() / 2,
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN(),
          T(123456.789),
          T(-7e9)};
}

float gpu(float value) { return std::isnan(value) ? kGpuNan : value; }

std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> all;
  for (const float value : values) all.push_back(std::bit_cast<uint32_t>(value));
  return all;
}

}  // namespace

TEST_CASE("float arithmetic to nearest is IEEE's, and its NaN is a GPU's", "[ptx]") {
  const auto x = floats<float>();
  CHECK(same_as<float>("add.rn.f32 {d}, {a}, {b}", x, [](float a, float b) { return gpu(a + b); }));
  CHECK(same_as<float>("sub.rn.f32 {d}, {a}, {b}", x, [](float a, float b) { return gpu(a - b); }));
  CHECK(same_as<float>("mul.rn.f32 {d}, {a}, {b}", x, [](float a, float b) { return gpu(a * b); }));
  CHECK(same_as<float>("div.rn.f32 {d}, {a}, {b}", x, [](float a, float b) { return gpu(a / b); }));
  CHECK(same_as<float>("fma.rn.f32 {d}, {a}, {b}, {a}", x, [](float a, float b) { return gpu(std::fma(a, b, a)); }));
  CHECK(same_as<float>("sqrt.rn.f32 {d}, {a}", x, [](float a, float) { return gpu(std::sqrt(a)); }));
  CHECK(same_as<float>("rcp.rn.f32 {d}, {a}", x, [](float a, float) { return gpu(1 / a); }));
  CHECK(same_as<float>("neg.f32 {d}, {a}", x, [](float a, float) { return gpu(-a); }));
  CHECK(same_as<float>("abs.f32 {d}, {a}", x, [](float a, float) { return gpu(std::fabs(a)); }));
  const auto y = floats<double>();
  // The bits of a double's NaN are not defined: it is replaced by 0.
  CHECK(same_as<double>(
      "fma.rn.f64 {d}, {a}, {b}, {b}; setp.num.f64 %p1, {d}, {d}; selp.f64 {d}, {d}, 0d0000000000000000, %p1", y,
      [](double a, double b) {
        const double result = std::fma(a, b, b);
        return std::isnan(result) ? 0 : result;
      }));
}

TEST_CASE("min and max prefer a number to NaN, and order the zeros", "[ptx]") {
  const auto least = [](float a, float b) {
    if (std::isnan(a)) return gpu(b);
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  };
  CHECK(same_as<float>("min.f32 {d}, {a}, {b}", floats<float>(), least));
  CHECK(same_as<float>("max.f32 {d}, {a}, {b}", floats<float>(), [&](float a, float b) {
    if (std::isnan(a)) return gpu(b);
    if (std::isnan(b)) return a;
    return -least(-a, -b);
  }));
  CHECK(same_as<float>("max.NaN.f32 {d}, {a}, {b}", floats<float>(),
                       [&](float a, float b) { return std::isnan(a) || std::isnan(b) ? kGpuNan : -least(-a, -b); }));
}

TEST_CASE("directed rounding brackets the exact result", "[ptx]") {
  const std::vector<float> a{1, -1, 0.1f, 1}, b{0x1p-30f, -0x1p-30f, 0.2f, 0};
  CHECK(apply<float>("add.rz.f32 {d}, {a}, {b}", a, b) == std::vector<float>{1, -1, std::nextafter(0.3f, 0.f), 1});
  CHECK(apply<float>("add.rp.f32 {d}, {a}, {b}", a, b)[0] == std::nextafter(1.f, 2.f));
  CHECK(apply<float>("add.rp.f32 {d}, {a}, {b}", a, b)[1] == -1);
  CHECK(apply<float>("add.rm.f32 {d}, {a}, {b}", a, b)[1] == std::nextafter(-1.f, -2.f));
  CHECK(apply<float>("fma.rm.f32 {d}, {a}, {a}, {b}", std::vector<float>{1}, std::vector<float>{-0x1p-40f})[0] ==
        std::nextafter(1.f, 0.f));
  CHECK(apply<float>("mul.rz.f32 {d}, {a}, {b}", std::vector<float>{3}, std::vector<float>{0.1f})[0] ==
        std::nextafter(3 * 0.1f, 3 * double{0.1f} < double{3 * 0.1f} ? 0.f : 3 * 0.1f));
  CHECK(apply<float>("fma.rn.sat.f32 {d}, {a}, {b}, {a}", std::vector<float>{2, 0.25f, -1, NAN},
                     std::vector<float>{1, 1, 1, 1}) == std::vector<float>{1, 0.5f, 0, 0});
}

TEST_CASE("ftz flushes subnormal operands and results", "[ptx]") {
  const std::vector<float> tiny{0x1p-130f, -0x1p-130f, 0x1p-126f};
  CHECK(bits(apply<float>("add.rn.ftz.f32 {d}, {a}, {a}", tiny)) == std::vector<uint32_t>{0, 0x80000000u, 0x01000000u});
  CHECK(bits(apply<float>("mul.rn.ftz.f32 {d}, {a}, 0f3F000000", tiny)) == std::vector<uint32_t>{0, 0x80000000u, 0});
  CHECK(apply<float>("add.rn.f32 {d}, {a}, {a}", tiny)[0] == 0x1p-129f);
}

TEST_CASE("floats become integers within their range", "[ptx]") {
  const std::vector<float> x{2.5f, -2.5f, 3.5f, 1e20f, -1e20f, NAN, -0.75f};
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();
  CHECK(apply<int32_t>("cvt.rzi.s32.f32 {d}, {a}", x) == std::vector<int32_t>{2, -2, 3, kMost, kLeast, 0, 0});
  CHECK(apply<int32_t>("cvt.rni.s32.f32 {d}, {a}", x) == std::vector<int32_t>{2, -2, 4, kMost, kLeast, 0, -1});
  CHECK(apply<int32_t>("cvt.rmi.s32.f32 {d}, {a}", x) == std::vector<int32_t>{2, -3, 3, kMost, kLeast, 0, -1});
  CHECK(apply<uint32_t>("cvt.rzi.u32.f32 {d}, {a}", x) == std::vector<uint32_t>{2, 0, 3, ~0u, 0, 0, 0});
  CHECK(apply<int64_t>("cvt.rzi.s64.f32 {d}, {a}", x)[5] == std::numeric_limits<int64_t>::min());
  CHECK(apply<float>("cvt.rni.f32.f32 {d}, {a}", x)[2] == 4);
  CHECK(apply<float>("cvt.rmi.f32.f32 {d}, {a}", x)[1] == -3);
  CHECK(apply<float>("cvt.sat.f32.f32 {d}, {a}", x) == std::vector<float>{1, 0, 1, 1, 0, 0, 0});
}

TEST_CASE("integers and doubles become floats, rounded", "[ptx]") {
  const std::vector<int64_t> x{(int64_t{1} << 40) + 1, -((int64_t{1} << 40) + 1)};
  CHECK(apply<float>("cvt.rn.f32.s64 {d}, {a}", x) == std::vector<float>{0x1p40f, -0x1p40f});
  CHECK(apply<float>("cvt.rp.f32.s64 {d}, {a}", x)[0] == std::nextafter(0x1p40f, kInf));
  CHECK(apply<double>("cvt.rn.f64.s64 {d}, {a}", x)[0] == 0x1p40 + 1);
  CHECK(apply<float>("cvt.rn.f32.u32 {d}, {a}", std::vector<uint32_t>{~0u})[0] == 0x1p32f);
  CHECK(apply<float>("cvt.rn.f32.f64 {d}, {a}", std::vector<double>{0.1, 1e300, -1e-300}) ==
        std::vector<float>{0.1f, kInf, -0.f});
  CHECK(apply<float>("cvt.rz.f32.f64 {d}, {a}", std::vector<double>{1e300})[0] == std::numeric_limits<float>::max());
  CHECK(apply<double>("cvt.f64.f32 {d}, {a}", std::vector<float>{0.1f})[0] == double{0.1f});
}

TEST_CASE("halves and bfloats", "[ptx]") {
  const std::vector<float> x{1, 65504, 65520, 1 + 0x1p-11f, 0x1p-24f, NAN, -2};
  const std::vector<uint16_t> half{0x3c00, 0x7bff, 0x7c00, 0x3c00, 0x0001, 0x7fff, 0xc000};
  CHECK(apply<uint16_t>("cvt.rn.f16.f32 {d}, {a}", x) == half);
  CHECK(apply<uint16_t>("cvt.rn.bf16.f32 {d}, {a}", x) ==
        std::vector<uint16_t>{0x3f80, 0x4780, 0x4780, 0x3f80, 0x3380, 0x7fff, 0xc000});
  CHECK(bits(apply<float>("cvt.f32.f16 {d}, {a}", half)) == bits({1, 65504, kInf, 1, 0x1p-24f, kGpuNan, -2}));
  CHECK(bits(apply<float>("cvt.f32.bf16 {d}, {a}", std::vector<uint16_t>{0x3f80, 0xff80, 0x7f81})) ==
        bits({1, -kInf, kGpuNan}));
  CHECK(apply<uint32_t>("cvt.rn.f16x2.f32 {d}, {a}, {b}", std::vector<float>{1}, std::vector<float>{-2})[0] ==
        0x3c00c000);
}

TEST_CASE("approximations are close", "[ptx]") {
  const std::vector<float> x{0.5f, 1, 3, 10.5f};
  const auto close = [&](const std::string& instruction, float (*f)(float)) {
    const auto results = apply<float>(instruction + " {d}, {a}", x);
    bool all = true;
    for (size_t i = 0; i < x.size(); ++i) all = all && std::fabs(results[i] - f(x[i])) <= 1e-6f * std::fabs(f(x[i]));
    return all;
  };
  CHECK(close("ex2.approx.ftz.f32", [](float a) { return std::exp2(a); }));
  CHECK(close("lg2.approx.f32", [](float a) { return std::log2(a); }));
  CHECK(close("rcp.approx.ftz.f32", [](float a) { return 1 / a; }));
  CHECK(close("rsqrt.approx.f32", [](float a) { return 1 / std::sqrt(a); }));
}
