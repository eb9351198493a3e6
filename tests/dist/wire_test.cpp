#include "dist/wire.h"

#include <catch2/catch.hpp>

#include "tensor/errors.h"

using namespace dgc;
using Catch::Contains;

namespace {

WireTensor tensor(int64_t numel, int64_t k) {
  WireTensor t;
  t.numel = numel;
  t.k = k;
  return t;
}

const WireLayout& sample() {
  static const WireLayout layout({tensor(10, 3), tensor(70000, 5), tensor(1, 1)}, WireValues::fp32);
  return layout;
}

}  // namespace

TEST_CASE("positions follow from numel and k", "[wire]") {
  const WireLayout& fp32 = sample();
  const auto t = fp32.tensors();
  // 4 + 3*2 = 10, up to 12, + 3*4 = 24;  24 + 2*4 = 32, + 5*2 = 42, up to 44, + 5*4 = 64;  68, 70 -> 72, 76 -> 80.
  CHECK((t[0].block_ends_at == 0 && t[0].offsets_at == 4 && t[0].values_at == 12));
  CHECK((t[1].block_ends_at == 24 && t[1].offsets_at == 32 && t[1].values_at == 44));
  CHECK((t[2].block_ends_at == 64 && t[2].offsets_at == 68 && t[2].values_at == 72));
  CHECK(fp32.entries() == 9);
  CHECK(fp32.payload_bytes() == 80);
  CHECK(fp32.message_bytes() == 128);

  const WireLayout fp16({tensor(10, 3), tensor(65536, 2)}, WireValues::fp16);
  CHECK((fp16.tensors()[0].values_at == 10 && fp16.tensors()[1].block_ends_at == 16));
  CHECK(fp16.payload_bytes() == 32);

  CHECK(WireLayout({}, WireValues::fp32).message_bytes() == 48);
  CHECK_THROWS_AS(WireLayout({tensor(3, 4)}, WireValues::fp32), InternalError);
  CHECK_THROWS_AS(WireLayout({tensor(3, 0)}, WireValues::fp32), InternalError);
}

TEST_CASE("the header says what the layout is", "[wire]") {
  const WireHeader header = sample().header(3);
  CHECK(header.worker == 3);
  CHECK(header.tensors == 3);
  CHECK(header.entries == 9);
  CHECK(header.payload_bytes == 80);
  CHECK(header.values == 0);
}

TEST_CASE("a fault becomes a sentence with the worker, the step and what was found", "[wire]") {
  using Kind = WireFaultKind;
  CHECK_THAT(describe({Kind::stale, 3, 12}, 13), Contains("worker 3 in step 13") && Contains("stale, from step 12"));
  CHECK_THAT(describe({Kind::worker, 2, 3}, 1), Contains("message of worker 2") && Contains("comes from worker 3"));
  CHECK_THAT(describe({Kind::version, 0, 9}, 1), Contains("version 9 instead of 2"));
  CHECK_THAT(describe({Kind::layout, 0, 0}, 1), Contains("same config"));
  CHECK_THAT(describe({Kind::checksum, 0, 0}, 1), Contains("checksum does not match"));
  CHECK_THAT(describe({Kind::magic, 0, 0}, 1), Contains("magic number"));
  CHECK_THAT(describe({Kind::indices, 0, 7}, 1), Contains("tensor 7"));
}
