#include "kernels/cpu/wire_message.h"

#include <catch.hpp>
#include <cstring>
#include <vector>

using namespace dgc;
using Kind = WireFaultKind;

namespace {

// Three tensors of 10, 70000 and 1 elements, of which 3, 5 and 1 are sent; positions as dist/wire.h lays them out.
const std::vector<DgcSegment>& segments() {
  static const std::vector<DgcSegment> all = {
      {0, 10, 3, 0, 4, 12, 0}, {16, 70000, 5, 24, 32, 44, 1}, {70016, 1, 1, 64, 68, 72, 3}};
  return all;
}

// A message with a valid index pattern: entry e of a tensor is element e.
struct Message {
  Message() : bytes(kWireHeaderBytes + 80) {
    table.segments = segments().data();
    table.count = 3;
    header.worker = 3;
    header.tensors = 3;
    header.payload_bytes = 80;
    header.entries = 9;
    for (const DgcSegment& s : segments()) {
      for (int64_t e = 0; e < s.k; ++e) set_offset(s, e, static_cast<uint16_t>(e));
      for (int64_t b = 0; b < s.blocks(); ++b) set_end(s, b, static_cast<uint32_t>(s.k));
    }
    seal();
  }
  void set_offset(const DgcSegment& s, int64_t entry, uint16_t offset) {
    std::memcpy(&bytes[kWireHeaderBytes + s.offsets_at + static_cast<size_t>(entry) * 2], &offset, 2);
  }
  void set_end(const DgcSegment& s, int64_t block, uint32_t end) {
    std::memcpy(&bytes[kWireHeaderBytes + s.block_ends_at + static_cast<size_t>(block) * 4], &end, 4);
  }
  void seal() { seal_message(bytes.data(), header, 12); }
  WireFault fault(uint64_t step = 12, uint32_t worker = 3) const {
    WireHeader want = header;
    want.worker = worker;
    return check_message(bytes.data(), want, step, table);
  }

  DgcTable table;
  WireHeader header;
  std::vector<std::byte> bytes;
};

}  // namespace

TEST_CASE("the header is the bytes that the documentation promises", "[wire]") {
  const Message message;
  const auto byte = [&](size_t at) { return std::to_integer<int>(message.bytes[at]); };
  CHECK((byte(0) == 'D' && byte(1) == 'G' && byte(2) == 'C' && byte(3) == 'M'));
  CHECK((byte(4) == 3 && byte(5) == 0));     // version
  CHECK((byte(6) == 0 && byte(7) == 0));     // fp32, block16
  CHECK((byte(8) == 3 && byte(9) == 0));     // worker
  CHECK(byte(12) == 3);                      // tensors
  CHECK((byte(16) == 12 && byte(17) == 0));  // step
  CHECK(byte(24) == 80);                     // payload bytes
  CHECK(byte(32) == 9);                      // entries
  CHECK(message.fault().kind == Kind::none);
}

TEST_CASE("stale, foreign and otherwise packed messages are told apart", "[wire]") {
  Message message;
  WireFault fault = message.fault(13);
  CHECK((fault.kind == Kind::stale && fault.found == 12 && fault.worker == 3));
  fault = message.fault(12, 2);
  CHECK((fault.kind == Kind::worker && fault.found == 3 && fault.worker == 2));
  message.header.entries = 10;
  CHECK(message.fault().kind == Kind::layout);
  message.header.entries = 9;
  message.bytes[6] = std::byte{1};
  fault = message.fault();
  CHECK((fault.kind == Kind::format && fault.found == 1));
}

TEST_CASE("every flipped bit is noticed", "[wire]") {
  Message message;
  for (size_t at = 0; at < message.bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      message.bytes[at] ^= std::byte(1 << bit);
      CAPTURE(at, bit);
      REQUIRE(message.fault().kind != Kind::none);
      message.bytes[at] ^= std::byte(1 << bit);
    }
  }
  REQUIRE(message.fault().kind == Kind::none);
}

TEST_CASE("hostile indices under a good checksum are refused", "[wire]") {
  Message message;
  const DgcSegment &small = segments()[0], &large = segments()[1];
  uint64_t tensor = 1;
  SECTION("outside the tensor") {
    message.set_offset(small, 2, 10);
    tensor = 0;
  }
  SECTION("outside the last block") {
    message.set_end(large, 0, 4);
    message.set_offset(large, 4, 70000 - 65536);
  }
  SECTION("twice") {
    message.set_offset(small, 1, 0);
    tensor = 0;
  }
  SECTION("backwards") {
    message.set_offset(small, 0, 5);
    tensor = 0;
  }
  SECTION("blocks that go back") { message.set_end(large, 1, 4); }
  SECTION("blocks beyond k") { message.set_end(large, 0, 0xffffffff); }
  SECTION("too few") {
    message.set_end(small, 0, 2);
    tensor = 0;
  }
  message.seal();
  const WireFault fault = message.fault();
  CHECK((fault.kind == Kind::indices && fault.found == tensor));
}
