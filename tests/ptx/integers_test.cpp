#include <catch.hpp>
#include <cstdint>
#include <limits>

#include "tests/ptx/apply.h"

using namespace dgc::ptx;

namespace {

template <typename T>
std::vector<T> integers() {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::vector<T> values{0, 1, 2, 3, 7, 31, 100, kLeast, kMost, static_cast<T>(-1), static_cast<T>(kMost / 3)};
  values.push_back(static_cast<T>(kLeast + 1));
  return values;
}

using Values32 = std::vector<uint32_t>;

}  // namespace

TEST_CASE("integers of 32 bits wrap, and divide towards zero", "[ptx]") {
  using S = int32_t;
  using U = uint32_t;
  const auto s = integers<S>();
  const auto u = integers<U>();
  CHECK(same_as<S>("add.s32 {d}, {a}, {b}", s, [](S a, S b) { return static_cast<S>(U(a) + U(b)); }));
  CHECK(same_as<S>("sub.s32 {d}, {a}, {b}", s, [](S a, S b) { return static_cast<S>(U(a) - U(b)); }));
  CHECK(same_as<S>("mul.lo.s32 {d}, {a}, {b}", s, [](S a, S b) { return static_cast<S>(U(a) * U(b)); }));
  CHECK(same_as<S>("mul.hi.s32 {d}, {a}, {b}", s, [](S a, S b) { return static_cast<S>(int64_t{a} * b >> 32); }));
  CHECK(same_as<U>("mul.hi.u32 {d}, {a}, {b}", u, [](U a, U b) { return static_cast<U>(uint64_t{a} * b >> 32); }));
  CHECK(same_as<int64_t>("mul.wide.s32 {d}, {a}, {b}", s, [](S a, S b) { return int64_t{a} * b; }));
  CHECK(same_as<uint64_t>("mul.wide.u32 {d}, {a}, {b}", u, [](U a, U b) { return uint64_t{a} * b; }));
  CHECK(same_as<S>("mad.lo.s32 {d}, {a}, {b}, {a}", s, [](S a, S b) { return static_cast<S>(U(a) * U(b) + U(a)); }));
  CHECK(same_as<S>("min.s32 {d}, {a}, {b}", s, [](S a, S b) { return std::min(a, b); }));
  CHECK(same_as<U>("max.u32 {d}, {a}, {b}", u, [](U a, U b) { return std::max(a, b); }));
  const auto undefined = [](S a, S b) { return b == 0 || (b == -1 && a == std::numeric_limits<S>::min()); };
  CHECK(same_as<S>("div.s32 {d}, {a}, {b}", s, [&](S a, S b) { return b == 0 ? -1 : undefined(a, b) ? a : a / b; }));
  CHECK(same_as<S>("rem.s32 {d}, {a}, {b}", s, [&](S a, S b) { return b == 0 ? a : undefined(a, b) ? 0 : a % b; }));
  CHECK(same_as<U>("div.u32 {d}, {a}, {b}", u, [](U a, U b) { return b == 0 ? ~0u : a / b; }));
  CHECK(same_as<S>("neg.s32 {d}, {a}", s, [](S a, S) { return static_cast<S>(0u - U(a)); }));
  CHECK(same_as<S>("abs.s32 {d}, {a}", s, [](S a, S) { return a < 0 ? static_cast<S>(0u - U(a)) : a; }));
}

TEST_CASE("integers of 16 and 64 bits", "[ptx]") {
  using S = int64_t;
  using U = uint64_t;
  const auto s = integers<S>();
  const auto u = integers<U>();
  CHECK(same_as<S>("add.s64 {d}, {a}, {b}", s, [](S a, S b) { return static_cast<S>(U(a) + U(b)); }));
  CHECK(same_as<S>("mul.lo.s64 {d}, {a}, {b}", s, [](S a, S b) { return static_cast<S>(U(a) * U(b)); }));
  CHECK(same_as<U>("mul.hi.u64 {d}, {a}, {b}", u, [](U a, U b) {
    const U low = (a & 0xffffffffu) * (b & 0xffffffffu), one = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
    const U other = (a & 0xffffffffu) * (b >> 32) + (one & 0xffffffffu);
    return (a >> 32) * (b >> 32) + (one >> 32) + (other >> 32);
  }));
  CHECK(same_as<S>("max.s64 {d}, {a}, {b}", s, [](S a, S b) { return std::max(a, b); }));
  CHECK(same_as<U>("rem.u64 {d}, {a}, {b}", u, [](U a, U b) { return b == 0 ? a : a % b; }));
  const auto h = integers<int16_t>();
  CHECK(same_as<int16_t>("add.s16 {d}, {a}, {b}", h, [](int a, int b) { return static_cast<int16_t>(a + b); }));
  CHECK(same_as<int32_t>("mul.wide.s16 {d}, {a}, {b}", h, [](int a, int b) { return a * b; }));
}

TEST_CASE("a shift by more than the width gives zeros, or the sign", "[ptx]") {
  const auto s = integers<int32_t>();
  const auto u = integers<uint32_t>();
  CHECK(same_as<uint32_t>("shl.b32 {d}, {a}, {b}", u, [](uint32_t a, uint32_t n) { return n > 31 ? 0 : a << n; }));
  CHECK(same_as<uint32_t>("shr.u32 {d}, {a}, {b}", u, [](uint32_t a, uint32_t n) { return n > 31 ? 0 : a >> n; }));
  CHECK(same_as<int32_t>("shr.s32 {d}, {a}, {b}", s,
                         [](int32_t a, int32_t n) { return a >> (static_cast<uint32_t>(n) > 31 ? 31 : n); }));
  const Values32 low{0x89abcdef}, high{0x01234567};
  CHECK(apply<uint32_t>("shf.l.wrap.b32 {d}, {a}, {b}, 36", low, high)[0] == 0x12345678);
  CHECK(apply<uint32_t>("shf.l.clamp.b32 {d}, {a}, {b}, 36", low, high)[0] == 0x89abcdef);
  CHECK(apply<uint32_t>("shf.r.wrap.b32 {d}, {a}, {b}, 4", low, high)[0] == 0x789abcde);
  CHECK(apply<uint32_t>("shf.r.clamp.b32 {d}, {a}, {b}, 99", low, high)[0] == 0x01234567);
}

TEST_CASE("bits are counted, found, permuted and moved", "[ptx]") {
  const Values32 x{0, 1, 0x80000000u, 0x00f0'1000u, ~0u};
  CHECK(apply<uint32_t>("popc.b32 {d}, {a}", x) == Values32{0, 1, 1, 5, 32});
  CHECK(apply<uint32_t>("clz.b32 {d}, {a}", x) == Values32{32, 31, 0, 8, 0});
  CHECK(apply<uint32_t>("brev.b32 {d}, {a}", x) == Values32{0, 0x80000000u, 1, 0x00080f00, ~0u});
  CHECK(apply<uint32_t>("bfind.u32 {d}, {a}", x) == Values32{~0u, 0, 31, 23, 31});
  CHECK(apply<uint32_t>("bfind.shiftamt.u32 {d}, {a}", x) == Values32{~0u, 31, 0, 8, 0});
  CHECK(apply<uint32_t>("bfind.s32 {d}, {a}", x) == Values32{~0u, 0, 30, 23, ~0u});
  const std::vector<uint64_t> wide{0, uint64_t{5} << 40, ~uint64_t{0}};
  CHECK(apply<uint32_t>("popc.b64 {d}, {a}", wide) == Values32{0, 2, 64});
  CHECK(apply<uint32_t>("clz.b64 {d}, {a}", wide) == Values32{64, 21, 0});

  const Values32 a{0x8000abcd};
  CHECK(apply<uint32_t>("bfe.u32 {d}, {a}, 4, 8", a)[0] == 0xbc);
  CHECK(apply<uint32_t>("bfe.s32 {d}, {a}, 4, 8", a)[0] == 0xffffffbc);
  CHECK(apply<uint32_t>("bfe.u32 {d}, {a}, 28, 8", a)[0] == 8);
  CHECK(apply<uint32_t>("bfe.s32 {d}, {a}, 28, 8", a)[0] == 0xfffffff8);
  CHECK(apply<uint32_t>("bfe.s32 {d}, {a}, 40, 8", a)[0] == 0xffffffff);
  CHECK(apply<uint32_t>("bfe.s32 {d}, {a}, 4, 0", a)[0] == 0);
  CHECK(apply<uint32_t>("bfi.b32 {d}, 0x5f, {a}, 8, 4", a)[0] == 0x8000afcd);
  CHECK(apply<uint32_t>("bfi.b32 {d}, 0x5f, {a}, 32, 4", a)[0] == 0x8000abcd);
  CHECK(apply<uint64_t>("bfi.b64 {d}, {a}, 7, 32, 32", std::vector<uint64_t>{9})[0] == (uint64_t{9} << 32 | 7));

  const Values32 b{0x11223344}, c{0x556677f8};
  CHECK(apply<uint32_t>("prmt.b32 {d}, {a}, {b}, 0x7610U", b, c)[0] == 0x55663344);
  CHECK(apply<uint32_t>("prmt.b32 {d}, {a}, {b}, 0xc840U", b, c)[0] == 0xff00f844);
  CHECK(apply<uint32_t>("lop3.b32 {d}, {a}, {b}, {a}, 0x3c", b, c)[0] == (b[0] ^ c[0]));
  CHECK(apply<uint32_t>("lop3.b32 {d}, {a}, {b}, {a}, 0xe8", b, c)[0] == b[0]);  // the majority
}

TEST_CASE("values are compared and chosen, and predicates joined", "[ptx]") {
  const auto s = integers<int32_t>();
  const auto u = integers<uint32_t>();
  const auto chosen = [](const std::string& compare) { return compare + " %p1, {a}, {b}; selp.b32 {d}, 1, 0, %p1"; };
  CHECK(same_as<int32_t>(chosen("setp.lt.s32"), s, [](auto a, auto b) { return a < b; }));
  CHECK(same_as<int32_t>(chosen("setp.ge.s32"), s, [](auto a, auto b) { return a >= b; }));
  CHECK(same_as<uint32_t>(chosen("setp.lt.u32"), u, [](auto a, auto b) { return a < b; }));
  CHECK(same_as<uint32_t>(chosen("setp.ne.u32"), u, [](auto a, auto b) { return a != b; }));
  CHECK(
      same_as<uint32_t>("setp.gt.u32 %p1, {a}, 5; setp.lt.u32 %p2, {b}, 9; and.pred %p3, %p1, %p2; not.pred %p4, %p3;"
                        "xor.pred %p5, %p4, %p1; selp.b32 {d}, {a}, {b}, %p5",
                        u, [](auto a, auto b) { return (!(a > 5 && b < 9) != (a > 5)) ? a : b; }));
  CHECK(same_as<uint32_t>("xor.b32 {d}, {a}, {b}; not.b32 {d}, {d}", u, [](auto a, auto b) { return ~(a ^ b); }));
  CHECK(apply<float>("setp.neu.f32 %p1, {a}, {a}; selp.f32 {d}, 0f3F800000, 0f40000000, %p1",
                     std::vector<float>{1, NAN}) == std::vector<float>{2, 1});
  CHECK(apply<float>("setp.ne.f32 %p1, {a}, 0f00000000; selp.f32 {d}, 0f3F800000, 0f40000000, %p1",
                     std::vector<float>{1, 0, NAN}) == std::vector<float>{1, 2, 2});
}

TEST_CASE("registers are packed, unpacked and converted", "[ptx]") {
  CHECK(apply<uint64_t>("mov.b64 {d}, {{{a}, {b}}}", Values32{1}, Values32{2})[0] == (uint64_t{2} << 32 | 1));
  CHECK(apply<uint32_t>("mov.b64 {{%r50, {d}}}, {a}", std::vector<uint64_t>{uint64_t{2} << 32 | 1})[0] == 2);
  CHECK(apply<uint16_t>("mov.b32 {{{d}, %rs50}}, {a}", Values32{0xabcd1234})[0] == 0x1234);
  CHECK(apply<uint64_t>("cvt.s64.s32 {d}, {a}", Values32{0x80000000u})[0] == 0xffffffff80000000u);
  CHECK(apply<uint64_t>("cvt.u64.u32 {d}, {a}", Values32{0x80000000u})[0] == 0x80000000u);
  CHECK(apply<uint64_t>("cvt.s64.s32 {d}, {a}", std::vector<uint64_t>{0x180000000u})[0] == 0xffffffff80000000u);
  CHECK(apply<uint32_t>("cvt.s32.s8 {d}, {a}", Values32{0x1ff})[0] == ~0u);
  CHECK(apply<uint16_t>("cvt.u16.u32 {d}, {a}", Values32{0x12345})[0] == 0x2345);
  CHECK(apply<uint32_t>("cvt.u32.u16 {d}, {a}", std::vector<uint16_t>{0xffff})[0] == 0xffff);
  CHECK(apply<int32_t>("cvt.sat.s8.s32 {d}, {a}", std::vector<int32_t>{-300, 5, 300}) ==
        std::vector<int32_t>{-128, 5, 127});
}
