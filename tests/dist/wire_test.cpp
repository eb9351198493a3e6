#include "dist/wire.h"

#include <catch2/catch.hpp>
#include <cstring>

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

// A message with a valid index pattern: entry e of a tensor is element e (or spread evenly over its blocks).
struct Message {
  explicit Message(const WireLayout& wire) : layout(wire), bytes(wire.message_bytes()) {
    for (const WireTensor& t : layout.tensors()) {
      for (int64_t e = 0; e < t.k; ++e) set_offset(t, e, static_cast<uint16_t>(e));
      for (int64_t b = 0; b < dgc_blocks(t.numel); ++b) set_end(t, b, static_cast<uint32_t>(t.k));
    }
    seal();
  }
  void set_offset(const WireTensor& t, int64_t entry, uint16_t offset) {
    std::memcpy(&bytes[kWireHeaderBytes + t.offsets_at + static_cast<size_t>(entry) * 2], &offset, 2);
  }
  void set_end(const WireTensor& t, int64_t block, uint32_t end) {
    std::memcpy(&bytes[kWireHeaderBytes + t.block_ends_at + static_cast<size_t>(block) * 4], &end, 4);
  }
  void seal() { seal_message(bytes, layout, 12, 3); }
  std::string fault(uint64_t step = 12, uint32_t worker = 3) const {
    try {
      open_message(bytes, layout, step, worker);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  const WireLayout& layout;
  std::vector<std::byte> bytes;
};

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

TEST_CASE("the header is the bytes that the documentation promises", "[wire]") {
  const Message message(sample());
  const auto byte = [&](size_t at) { return std::to_integer<int>(message.bytes[at]); };
  CHECK((byte(0) == 'D' && byte(1) == 'G' && byte(2) == 'C' && byte(3) == 'M'));
  CHECK((byte(4) == 1 && byte(5) == 0));     // version
  CHECK((byte(6) == 0 && byte(7) == 0));     // fp32
  CHECK((byte(8) == 3 && byte(9) == 0));     // worker
  CHECK(byte(12) == 3);                      // tensors
  CHECK((byte(16) == 12 && byte(17) == 0));  // step
  CHECK(byte(24) == 80);                     // payload bytes
  CHECK(byte(32) == 9);                      // entries
}

TEST_CASE("a good message opens to its payload", "[wire]") {
  const Message message(sample());
  const auto payload = open_message(message.bytes, sample(), 12, 3);
  CHECK(payload.data() == message.bytes.data() + 48);
  CHECK(payload.size() == 80);
  const WireLayout empty({}, WireValues::fp16);
  CHECK(Message(empty).fault().empty());
}

TEST_CASE("stale, foreign and foreign-sized messages are named", "[wire]") {
  const Message message(sample());
  CHECK_THAT(message.fault(13), Contains("worker 3") && Contains("step 13") && Contains("stale, from step 12"));
  CHECK_THAT(message.fault(12, 2), Contains("message of worker 2") && Contains("comes from worker 3"));
  Message longer(sample());
  longer.bytes.resize(longer.bytes.size() + 1);
  CHECK_THAT(longer.fault(), Contains("129 bytes instead of 128"));

  // Same size, other k: only the header tells.
  const WireLayout a({tensor(100, 2), tensor(100, 6)}, WireValues::fp32);
  const WireLayout b({tensor(90, 6), tensor(100, 3)}, WireValues::fp32);
  REQUIRE(a.message_bytes() == b.message_bytes());
  const Message other(a);
  CHECK_THROWS_WITH(open_message(other.bytes, b, 12, 3), Contains("same config"));
}

TEST_CASE("every flipped bit is noticed", "[wire]") {
  Message message(sample());
  for (size_t at = 0; at < message.bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      message.bytes[at] ^= std::byte(1 << bit);
      CAPTURE(at, bit);
      REQUIRE_FALSE(message.fault().empty());
      message.bytes[at] ^= std::byte(1 << bit);
    }
  }
  REQUIRE(message.fault().empty());
}

TEST_CASE("hostile indices under a good checksum are refused", "[wire]") {
  Message message(sample());
  const WireTensor& small = sample().tensors()[0];
  const WireTensor& large = sample().tensors()[1];
  std::string expected;
  SECTION("outside the tensor") {
    message.set_offset(small, 2, 10);
    expected = "tensor 0: entry 2 lies outside";
  }
  SECTION("outside the last block") {
    message.set_end(large, 0, 4);
    message.set_offset(large, 4, 70000 - 65536);
    expected = "tensor 1: entry 4 lies outside";
  }
  SECTION("twice") {
    message.set_offset(small, 1, 0);
    expected = "tensor 0: entry 1 is out of order";
  }
  SECTION("backwards") {
    message.set_offset(small, 0, 5);
    expected = "tensor 0: entry 1 is out of order";
  }
  SECTION("blocks that go back") {
    message.set_end(large, 1, 4);
    expected = "tensor 1: block 1 ends at entry 4";
  }
  SECTION("blocks beyond k") {
    message.set_end(large, 0, 0xffffffff);
    expected = "tensor 1: block 0 ends at entry 4294967295";
  }
  SECTION("too few") {
    message.set_end(small, 0, 2);
    expected = "tensor 0: 2 entries instead of 3";
  }
  message.seal();
  CHECK_THAT(message.fault(), Contains(expected));
}
