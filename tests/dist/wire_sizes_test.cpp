#include "dist/wire_sizes.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "dist/wire.h"

using namespace dgc;

TEST_CASE("bytes of one tensor in every format, by hand", "[wire]") {
  CHECK(wire_bytes(WireFormat::paper48, 1000000, 1000) == 6000);
  CHECK(wire_bytes(WireFormat::fp32_int32, 1000000, 1000) == 8000);
  CHECK(wire_bytes(WireFormat::fp32_block16, 1000000, 1000) == 6064);  // 16 blocks
  CHECK(wire_bytes(WireFormat::fp16_block16, 1000000, 1000) == 4064);
  CHECK(wire_bytes(WireFormat::fp32_block16, 10, 3) == 24);  // 4 + 6, aligned to 12, + 12
  CHECK(wire_format_name(WireFormat::fp16_rice) == "fp16+rice");
  CHECK(kWireFormats.size() == 5);
}

TEST_CASE("the block16 sizes are those of real messages", "[wire]") {
  for (const int64_t numel : {1, 15, 65535, 65536, 65537, 1000001}) {
    for (const int64_t k : {int64_t{1}, (numel + 99) / 100, numel}) {
      WireTensor t;
      t.numel = numel;
      t.k = k;
      const WireLayout fp32({t}, WireValues::fp32), fp16({t}, WireValues::fp16);
      CAPTURE(numel, k);
      CHECK(wire_bytes(WireFormat::fp32_block16, numel, k) == int64_t(fp32.tensors()[0].values_at) + 4 * k);
      CHECK(wire_bytes(WireFormat::fp16_block16, numel, k) == int64_t(fp16.tensors()[0].values_at) + 2 * k);
    }
  }
}

TEST_CASE("the best Rice code at 0.1 % comes close to the entropy", "[wire]") {
  // H = (-p log2 p - (1 - p) log2 (1 - p)) / p bits per gap.
  const double p = 0.001;
  const double entropy = (-p * std::log2(p) - (1 - p) * std::log2(1 - p)) / p;
  CHECK(rice_bits(1000000, 1000) > entropy);
  CHECK(rice_bits(1000000, 1000) == Approx(11.5).margin(0.05));
  CHECK(rice_bits(100, 100) == 1);         // nothing but zeros: one bit each
  CHECK(rice_bits(100, 50) == Approx(2));  // b = 0: 1 + q / (1 - q)
  CHECK(wire_bytes(WireFormat::fp16_rice, 100, 50) == 113);
}
