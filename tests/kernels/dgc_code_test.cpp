#include <catch.hpp>
#include <limits>
#include <numeric>
#include <set>

#include "kernels/wire_codes.h"
#include "tests/kernels/dgc_code_case.h"
#include "tests/kernels/kernel_backends.h"

// Messages as they travel: dgc_encode and dgc_decode against the words of docs/wire_format.md.
using namespace dgc;
using namespace dgc::test;

namespace {

std::vector<int64_t> random_indices(const Size& size, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::set<int64_t> chosen;
  if (2 * size.k > size.numel) {  // leave some out instead
    std::vector<int64_t> all(static_cast<size_t>(size.numel));
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    chosen.insert(all.begin(), all.begin() + size.k);
  }
  while (static_cast<int64_t>(chosen.size()) < size.k) {
    chosen.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(size.numel)));
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<float> random_values(size_t count, uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

void fill(CodeCase& c, size_t segment, const std::vector<int64_t>& indices, float deviation = 1) {
  c.set(segment, {indices, random_values(indices.size(), 3 + static_cast<uint32_t>(segment), deviation)});
}

// Encodes, compares with the specification, and sends the message of three workers through the decoder.
void check(Backend& backend, CodeCase c) {
  seal(c);
  CodeCase want = c;
  reference_encode(want);
  encode(backend, c);
  REQUIRE(bits_of(c.v) == bits_of(want.v));
  REQUIRE(c.message == want.message);
  REQUIRE(c.coded == want.coded);

  std::vector<std::byte> came, expected;
  for (int worker = 0; worker < 3; ++worker) {
    came.insert(came.end(), c.coded.begin(), c.coded.end());
    expected.insert(expected.end(), c.message.begin(), c.message.end());
  }
  REQUIRE(decode(backend, c, came) == expected);
}

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<std::byte> coded_payload(Backend& backend, CodeCase c) {
  seal(c);
  encode(backend, c);
  return {c.coded.begin() + sizeof(WireHeader), c.coded.end()};
}

}  // namespace

TEST_CASE("encoding and decoding are what the specification says, in every format", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  for (const WireFormat format : all_formats()) {
    CAPTURE(backend->name(), wire_format_name(format));
    const std::vector<Size> sizes = {{1, 1}, {70000, 300}, {65536, 1}, {700, 700}, {131073, 1000}};
    CodeCase c(sizes, format);
    for (size_t i = 0; i < sizes.size(); ++i) fill(c, i, random_indices(sizes[i], 5), i == 4 ? 1e-6f : 100.f);
    check(*backend, c);
  }
}

TEST_CASE("where nothing is compressed, there is nothing to encode", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  for (const WireFormat format : all_formats()) {
    CAPTURE(backend->name(), wire_format_name(format));
    check(*backend, CodeCase({}, format));
  }
}

TEST_CASE("every index set comes back: sizes around blocks and chunks", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto indices = GENERATE(from_range(all_of<WireIndices>()));
  for (const int64_t numel : {1, 2, 31, 33, 255, 257, 4097, 65535, 65536, 65537, 131073}) {
    for (const int64_t k : {int64_t{1}, numel / 1000, numel / 50, numel}) {
      if (k < 1 || (k == numel && numel > 5000)) continue;
      CAPTURE(backend->name(), indices, numel, k);
      CodeCase c({{numel, k}}, {WireValues::fp16, indices});
      fill(c, 0, random_indices({numel, k}, static_cast<uint32_t>(numel + k)));
      check(*backend, c);
    }
  }
}

TEST_CASE("every index set comes back: one block, one end, many chunks, long gaps", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto indices = GENERATE(from_range(all_of<WireIndices>()));
  CAPTURE(backend->name(), indices);
  std::vector<int64_t> some(500), gaps = {65534};
  std::iota(some.begin(), some.end(), 65536 * 2 + 100);
  for (const int64_t zeros : {65535, 0, 65536, 65534, 131070, 131071, 1, 300000})
    gaps.push_back(gaps.back() + zeros + 1);
  std::vector<int64_t> last(500);
  std::iota(last.begin(), last.end(), 400000 - 500);
  std::vector<int64_t> first(500);
  std::iota(first.begin(), first.end(), 0);
  const std::vector<std::vector<int64_t>> sets = {some, last, first, gaps, {999999}, random_indices({66000, 20000}, 9)};
  std::vector<Size> sizes;
  for (const auto& set : sets)
    sizes.push_back({std::max<int64_t>(set.back() + 1, 66000), static_cast<int64_t>(set.size())});
  CodeCase c(sizes, {WireValues::int8, indices});
  for (size_t i = 0; i < sets.size(); ++i) fill(c, i, sets[i]);
  check(*backend, c);
}

TEST_CASE("every index set comes back: more blocks than a block has threads", "[dgc]") {
  const auto backend = GENERATE(from_range(quick_kernel_backends())).make();
  const auto indices = GENERATE(from_range(all_of<WireIndices>()));
  CAPTURE(backend->name(), indices);
  CodeCase c({{258 * kDgcBlock, 4}}, {WireValues::fp32, indices});
  fill(c, 0, {5, 70000, 256 * kDgcBlock + 9, 257 * kDgcBlock + 7});
  check(*backend, c);
}

TEST_CASE("every value comes back, or what rounding took away lies in v", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto values = GENERATE(from_range(all_of<WireValues>()));
  const float deviation = GENERATE(0.f, 1e-40f, 1e-9f, 1.f, 1e8f, 1e30f, 1e38f);
  CAPTURE(backend->name(), values, deviation);
  CodeCase c({{2000, 700}}, {values, WireIndices::rice});
  fill(c, 0, random_indices({2000, 700}, 1), deviation);
  Entries before = c.get(0);
  for (float& v : before.values) v = std::isfinite(v) ? v : 1;
  c.set(0, before);
  check(*backend, c);

  seal(c);
  encode(*backend, c);  // sent plus kept is what there was, bit for bit
  const Entries sent = c.get(0);
  for (size_t e = 0; e < sent.indices.size(); ++e) {
    const float kept = c.v[static_cast<size_t>(c.segments[0].offset + sent.indices[e])];
    REQUIRE(kept + sent.values[e] == before.values[e]);
  }
}

TEST_CASE("values that are not finite are lost, and travel", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const auto values : {WireValues::fp32, WireValues::fp16, WireValues::bf16, WireValues::int8}) {
    CAPTURE(backend->name(), values);
    CodeCase c({{20, 5}}, {values, WireIndices::run16});
    c.set(0, {{1, 2, 3, 7, 19}, {1.f, kInf, -kInf, std::bit_cast<float>(kWireNan), -2.f}});
    check(*backend, c);
    seal(c);
    encode(*backend, c);
    const Entries sent = c.get(0);
    CHECK((sent.values[0] == Approx(1).epsilon(0.01) && sent.values[4] == Approx(-2).epsilon(0.01)));
    CHECK_FALSE((std::isfinite(sent.values[1]) || std::isfinite(sent.values[2]) || !std::isnan(sent.values[3])));
    for (const int64_t i : {2, 3, 7}) CHECK(c.v[static_cast<size_t>(c.segments[0].offset + i)] == 0);
  }
}

// 70,000 elements, of which 3, 5 and 69,999 are sent; then 4 of 4. The bytes are written out by hand.
TEST_CASE("the bytes of a small message", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const auto payload = [&](WireFormat format) {
    CodeCase c({{70000, 3}, {4, 4}}, format);
    c.set(0, {{3, 5, 69999}, {1.f, -2.f, 0.5f}});
    c.set(1, {{0, 1, 2, 3}, {0.f, 4.f, 0.f, -1.f}});
    return coded_payload(*backend, c);
  };
  CHECK(payload({WireValues::fp32, WireIndices::int32}) ==
        bytes_of({3, 0, 0,    0,    5, 0, 0,    0,    0x6f, 0x11, 1, 0,                       // 69,999 = 0x1116f
                  0, 0, 0x80, 0x3f, 0, 0, 0,    0xc0, 0,    0,    0, 0x3f,                    // 1, -2, 0.5
                  0, 0, 0,    0,    1, 0, 0,    0,    2,    0,    0, 0,    3, 0, 0,    0,     //
                  0, 0, 0,    0,    0, 0, 0x80, 0x40, 0,    0,    0, 0,    0, 0, 0x80, 0xbf,  //
                  0, 0, 0,    0,    0, 0, 0,    0}));                                         // up to 64
  CHECK(
      payload({WireValues::fp16, WireIndices::block16}) ==
      bytes_of({2, 0,    0, 0,    3, 0,    0, 0, 3, 0, 5, 0,    0x6f, 0x11,  // 2 in the first block, 3 with the second
                0, 0x3c, 0, 0xc0, 0, 0x38, 4, 0, 0, 0,                       //
                0, 0,    1, 0,    2, 0,    3, 0, 0, 0, 0, 0x44, 0,    0,    0, 0xbc,  //
                0, 0,    0, 0,    0, 0,    0, 0}));
  CHECK(payload({WireValues::bf16, WireIndices::run16}) ==
        bytes_of({3,    0,    1, 0,    0xff, 0xff, 0x6a, 0x11,  // 3, 1, then 69,993 = 65,535 + 4,458 zeros
                  0x80, 0x3f, 0, 0xc0, 0,    0x3f, 0,    0,     // 1, -2, 0.5, up to 16
                  0,    0,    0, 0,    0,    0,    0,    0,    0, 0, 0x80, 0x40, 0, 0, 0x80, 0xbf}));
  // 3, 4 and 69,997 zeros before each. b = 14 of 70,000 and 3: 3 * 14 + 3 + 4 = 49 bits. Quotients 0, 0, 4: 11, 0000,
  // 1. Remainders 3, 4 and 69,997 - 4 * 16,384 = 4,461 = 0x116d at bits 0, 14 and 28. b = 0 of 4 and 4: four ones.
  CHECK(payload({WireValues::int8, WireIndices::rice}) ==
        bytes_of({0x43, 0,    0,  0,    0,    0, 0x82, 0x3c,  // 2 / 127 up to 8 bits: 130 / 8192
                  3,    0,    1,  0xd0, 0x16, 1, 0,    0,     //
                  63,   0x82, 32, 0,                          // 63.02, -126.03, 31.51 steps; up to 4
                  0x0f, 0,    0,  0,    0,    0, 2,    0x3d,  // 4 / 127 up: 130 / 4096
                  0,    126,  0,  0xe0}));                    // 126.03, -31.51 steps
}

TEST_CASE("skipped or after a fault, nothing is encoded or decoded", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CodeCase c({{5000, 50}}, {WireValues::int8, WireIndices::rice});
  fill(c, 0, random_indices({5000, 50}, 2));
  seal(c);
  c.skip = 1;
  const CodeCase before = c;
  encode(*backend, c);
  CHECK((c.message == before.message && c.coded == before.coded && bits_of(c.v) == bits_of(before.v)));
  StepControl control;
  control.skip = GENERATE(0, 1);
  if (control.skip == 0) control.fault.kind = WireFaultKind::stale;
  const std::vector<std::byte> untouched(c.message.size(), std::byte{0x77});
  CHECK(decode(*backend, c, c.coded, control) == untouched);
}
