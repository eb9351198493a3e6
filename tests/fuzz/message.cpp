// The check of messages in their canonical form, against docs/wire_format.md written down once more. The input: byte 0
// the number of tensors, per tensor 3 bytes numel and 2 bytes k; byte by byte which parts of the header are not as they
// must be, then what they are instead; the payload.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "dist/wire.h"
#include "kernels/cpu/wire_message.h"
#include "tests/fuzz/input.h"

using namespace dgc;

namespace {

constexpr uint64_t kStep = 7;

uint64_t checksum(const WireHeader& header, const std::byte* payload, size_t bytes) {
  std::vector<uint64_t> hashed;
  for (size_t at = 0; at < bytes; at += 1024) {
    hashed.push_back(XXH64(payload + at, std::min<size_t>(1024, bytes - at), header.step));
  }
  std::string all(40, '\0');
  std::memcpy(all.data(), &header, 40);
  all.append(reinterpret_cast<const char*>(hashed.data()), 8 * hashed.size());
  return XXH64(all.data(), all.size(), header.step);
}

// Every entry's place in the tensor must lie behind the one before it, and in its block.
bool sound(const WireTensor& t, const std::byte* payload) {
  const auto* ends = reinterpret_cast<const uint32_t*>(payload + t.high_at);
  const auto* offsets = reinterpret_cast<const uint16_t*>(payload + t.low_at);
  int64_t entry = 0, last = -1;
  for (int64_t block = 0; block * 65536 < t.numel; ++block) {
    if (ends[block] < entry || ends[block] > t.k) return false;
    for (; entry < ends[block]; ++entry) {
      const int64_t place = block * 65536 + offsets[entry];
      if (place <= last || place >= t.numel) return false;
      last = place;
    }
  }
  return entry == t.k;
}

template <typename T>
void maybe_change(fuzz::Input& input, uint16_t& changes, T& field) {
  if ((changes & 1) != 0) field = input.take<T>();
  changes = static_cast<uint16_t>(changes >> 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::vector<WireTensor> tensors(input.take<uint8_t>() % 3 + 1);
  for (WireTensor& t : tensors) {
    t.numel = 1 + (input.take<uint16_t>() | int64_t{input.take<uint8_t>()} << 16) % 200000;
    t.k = 1 + input.take<uint16_t>() % std::min<int64_t>(t.numel, 600);
  }
  const WireLayout layout(tensors, kCanonicalWire);
  std::vector<DgcSegment> segments;
  DgcTable table;
  for (const WireTensor& t : layout.tensors()) {
    segments.push_back({0, t.numel, t.k, t.high_at, t.low_at, t.values_at, table.blocks});
    table.blocks += segments.back().blocks();
  }
  table.segments = segments.data();
  table.count = static_cast<int32_t>(segments.size());

  const WireHeader want = wire_header(layout, kCanonicalWire, 3);
  WireHeader header = want;
  header.step = kStep;
  auto changes = input.take<uint16_t>();
  maybe_change(input, changes, header.magic);
  maybe_change(input, changes, header.version);
  maybe_change(input, changes, header.values);
  maybe_change(input, changes, header.indices);
  maybe_change(input, changes, header.worker);
  maybe_change(input, changes, header.tensors);
  maybe_change(input, changes, header.step);
  maybe_change(input, changes, header.payload_bytes);
  maybe_change(input, changes, header.entries);
  std::vector<std::byte> message(layout.message_bytes());
  std::byte* payload = message.data() + kWireHeaderBytes;
  input.take_bytes(payload, layout.payload_bytes());
  header.checksum = checksum(header, payload, layout.payload_bytes());
  maybe_change(input, changes, header.checksum);
  std::memcpy(message.data(), &header, sizeof(header));

  std::vector<WireFaultKind> faults;  // in the order of the specification
  const auto expect = [&](bool good, WireFaultKind kind) {
    if (!good) faults.push_back(kind);
  };
  expect(header.magic == want.magic, WireFaultKind::magic);
  expect(header.version == want.version, WireFaultKind::version);
  expect(header.values == want.values && header.indices == want.indices, WireFaultKind::format);
  expect(header.checksum == checksum(header, payload, layout.payload_bytes()), WireFaultKind::checksum);
  expect(header.step == kStep, WireFaultKind::stale);
  expect(header.worker == want.worker, WireFaultKind::worker);
  expect(header.tensors == want.tensors && header.payload_bytes == want.payload_bytes && header.entries == want.entries,
         WireFaultKind::layout);
  expect(std::ranges::all_of(layout.tensors(), [&](const WireTensor& t) { return sound(t, payload); }),
         WireFaultKind::indices);
  faults.push_back(WireFaultKind::none);

  const WireFault fault = check_message(message.data(), want, kStep, table);
  fuzz::require(fault.kind == faults.front());
  fuzz::require(!describe(fault, kStep).empty());
  return 0;
}
