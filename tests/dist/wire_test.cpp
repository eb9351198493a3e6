#include "dist/wire.h"

#include <catch.hpp>

#include "tensor/errors.h"

using namespace dgc;
using Catch::Contains;

namespace {

WireTensor tensor(int64_t numel, int64_t k) { return {.numel = numel, .k = k}; }

const WireLayout& sample() {
  static const WireLayout layout({tensor(10, 3), tensor(70000, 5), tensor(1, 1)}, kCanonicalWire);
  return layout;
}

}  // namespace

TEST_CASE("positions follow from numel and k", "[wire]") {
  const auto t = sample().tensors();
  // 4 + 3*2 = 10, up to 12, + 3*4 = 24;  24 + 2*4 = 32, + 5*2 = 42, up to 44, + 5*4 = 64;  68, 70 -> 72, 76 -> 80.
  CHECK((t[0].high_at == 0 && t[0].low_at == 4 && t[0].values_at == 12));
  CHECK((t[1].high_at == 24 && t[1].low_at == 32 && t[1].values_at == 44));
  CHECK((t[2].high_at == 64 && t[2].low_at == 68 && t[2].values_at == 72));
  CHECK((t[0].words == 3 && t[1].words == 5 && t[2].words == 1));
  CHECK(sample().entries() == 9);
  CHECK(sample().payload_bytes() == 80);
  CHECK(sample().message_bytes() == 128);

  CHECK(WireLayout({}, kCanonicalWire).message_bytes() == 48);
  CHECK_THROWS_AS(WireLayout({tensor(3, 4)}, kCanonicalWire), InternalError);
  CHECK_THROWS_AS(WireLayout({tensor(3, 0)}, kCanonicalWire), InternalError);
}

TEST_CASE("positions in the other formats, by hand", "[wire]") {
  const std::vector<WireTensor> two = {tensor(10, 3), tensor(70000, 5)};
  const WireLayout fp16(two, {WireValues::fp16, WireIndices::block16});
  // 4 + 6 = 10, + 6 = 16;  16 + 8 = 24, + 10 = 34, + 10 = 44 -> 48.
  CHECK((fp16.tensors()[0].low_at == 4 && fp16.tensors()[0].values_at == 10));
  CHECK((fp16.tensors()[1].high_at == 16 && fp16.tensors()[1].low_at == 24 && fp16.tensors()[1].values_at == 34));
  CHECK(fp16.payload_bytes() == 48);

  const WireLayout int32(two, {WireValues::int8, WireIndices::int32});
  // 4 + 12 = 16, + 3 = 19;  up to 20, 24, + 20 = 44, + 5 = 49 -> 64.
  CHECK((int32.tensors()[0].scale_at == 0 && int32.tensors()[0].low_at == 4 && int32.tensors()[0].values_at == 16));
  CHECK((int32.tensors()[1].scale_at == 20 && int32.tensors()[1].low_at == 24 && int32.tensors()[1].values_at == 44));
  CHECK((int32.tensors()[1].words == 5 && int32.payload_bytes() == 64));

  const WireLayout run16(two, {WireValues::bf16, WireIndices::run16});
  // 6, + 6 = 12;  5 words and one for 69,995 zeros: 12 + 12 = 24, + 10 = 34 -> 48.
  CHECK((run16.tensors()[0].low_at == 0 && run16.tensors()[0].values_at == 6 && run16.tensors()[0].words == 3));
  CHECK((run16.tensors()[1].low_at == 12 && run16.tensors()[1].values_at == 24 && run16.tensors()[1].words == 6));
  CHECK(run16.payload_bytes() == 48);

  const WireLayout rice(two, {WireValues::fp32, WireIndices::rice});
  // Of 10 and 3, b = 1: 3 + 3 quotient bits, 3 of remainders (b = 2: 4 and 6). 4 + 4 + 12 = 20.
  CHECK((rice.tensors()[0].low_bits == 1 && rice.tensors()[0].words == 1));
  CHECK((rice.tensors()[0].high_at == 0 && rice.tensors()[0].low_at == 4 && rice.tensors()[0].values_at == 8));
  // Of 70,000 and 5, b = 13: 5 + 8 quotient bits and 65 of remainders, 3 words. 20 + 4 + 12 + 20 = 56 -> 64.
  CHECK((rice.tensors()[1].low_bits == 13 && rice.tensors()[1].words == 1));
  CHECK((rice.tensors()[1].high_at == 20 && rice.tensors()[1].low_at == 24 && rice.tensors()[1].values_at == 36));
  CHECK(rice.payload_bytes() == 64);
}

TEST_CASE("the header says what the canonical layout is and how it travels", "[wire]") {
  const WireHeader header = wire_header(sample(), {WireValues::bf16, WireIndices::rice}, 3);
  CHECK(header.worker == 3);
  CHECK(header.tensors == 3);
  CHECK(header.entries == 9);
  CHECK(header.payload_bytes == 80);
  CHECK((header.values == WireValues::bf16 && header.indices == WireIndices::rice));
  CHECK(wire_format_name({WireValues::bf16, WireIndices::rice}) == "bf16+rice");
  CHECK_THROWS_AS(wire_header(WireLayout({}, {WireValues::fp16, WireIndices::rice}), kCanonicalWire, 0), InternalError);
}

TEST_CASE("a fault becomes a sentence with the worker, the step and what was found", "[wire]") {
  using Kind = WireFaultKind;
  CHECK_THAT(describe({Kind::stale, 3, 12}, 13), Contains("worker 3 in step 13") && Contains("stale, from step 12"));
  CHECK_THAT(describe({Kind::worker, 2, 3}, 1), Contains("message of worker 2") && Contains("comes from worker 3"));
  CHECK_THAT(describe({Kind::version, 0, 9}, 1), Contains("version 9 instead of 3"));
  CHECK_THAT(describe({Kind::format, 0, 0x301}, 1), Contains("travels as fp16+rice") && Contains("exchange.wire"));
  CHECK_THAT(describe({Kind::format, 0, 0x904}, 1), Contains("travels as an unknown format"));
  CHECK_THAT(describe({Kind::layout, 0, 0}, 1), Contains("same config"));
  CHECK_THAT(describe({Kind::checksum, 0, 0}, 1), Contains("checksum does not match"));
  CHECK_THAT(describe({Kind::magic, 0, 0}, 1), Contains("magic number"));
  CHECK_THAT(describe({Kind::indices, 0, 7}, 1), Contains("tensor 7"));
}
