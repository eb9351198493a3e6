// The decoder of messages, on any bytes in any format: it must stay inside its buffers, and what it makes of them must
// be refused, or be a message. The input is a layout, then the bytes that came: byte 0 the format and how large tensors
// may be, byte 1 the number of tensors, per tensor 4 bytes numel and 2 bytes k.
#include "dist/wire.h"

#include <vector>

#include "kernels/cpu/wire_message.h"
#include "tests/fuzz/input.h"
#include "tests/support/all_of.h"

using namespace dgc;
using fuzz::Input;
using fuzz::require;

namespace {

constexpr size_t kMostTensors = 3;
constexpr int64_t kMostEntries = 5000;

constexpr int kValues = test::number_of<WireValues>(), kIndices = test::number_of<WireIndices>();

struct Layouts {
  explicit Layouts(Input& input) {
    const auto format = input.take<uint8_t>();
    std::vector<WireTensor> tensors(input.take<uint8_t>() % kMostTensors + 1);
    for (WireTensor& tensor : tensors) {
      tensor.numel = std::max<int64_t>(input.take<uint32_t>() >> 2 * (15 - format / 16), 1);
      tensor.k = 1 + input.take<uint16_t>() % std::min(tensor.numel, kMostEntries);
    }
    canonical = WireLayout(tensors, kCanonicalWire);
    coded = WireLayout(
        tensors, {static_cast<WireValues>(format % kValues), static_cast<WireIndices>(format / kValues % kIndices)});
    for (size_t i = 0; i < tensors.size(); ++i) {
      const WireTensor &plain = canonical.tensors()[i], &code = coded.tensors()[i];
      segments.push_back({0, plain.numel, plain.k, plain.high_at, plain.low_at, plain.values_at, table.blocks});
      codes.push_back({code.high_at, code.scale_at, code.low_at, code.values_at, code.words, 0, code.low_bits});
      table.blocks += segments.back().blocks();
    }
    table.segments = segments.data();
    table.count = static_cast<int32_t>(segments.size());
  }
  DgcCodes all_codes() const { return {codes.data(), coded.format(), coded.payload_bytes(), 0}; }

  WireLayout canonical, coded;
  std::vector<DgcSegment> segments;
  std::vector<DgcCode> codes;
  DgcTable table;
};

std::vector<std::byte> decode(const Layouts& layouts, const StepControl& control, const std::vector<std::byte>& came) {
  std::vector<std::byte> message(layouts.canonical.message_bytes(), std::byte{0x77});
  DgcDecodeArgs args;
  args.table = layouts.table;
  args.codes = layouts.all_codes();
  args.control = &control;
  args.payload_bytes = layouts.canonical.payload_bytes();
  args.workers = 1;
  args.coded = came.data();
  args.messages = message.data();
  decode_messages(args, 1);
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Layouts layouts(input);
  std::vector<std::byte> came(layouts.coded.message_bytes());
  input.take_bytes(came.data(), came.size());

  const StepControl control;
  const WireHeader want = wire_header(layouts.canonical, layouts.coded.format(), 0);
  std::vector<std::byte> message = decode(layouts, control, came);
  check_message(message.data(), want, 0, layouts.table);

  // With a good checksum only the indices can be wrong.
  seal_message(message.data(), want, 0);
  const WireFaultKind kind = check_message(message.data(), want, 0, layouts.table).kind;
  require(kind == WireFaultKind::none || kind == WireFaultKind::indices);
  if (kind != WireFaultKind::none) return 0;

  // A sound message, encoded and decoded, is what encoding has made of it. Elements all share a v of their own.
  int64_t largest = 0;
  for (const DgcSegment& segment : layouts.segments) largest = std::max(largest, segment.numel);
  if (largest > int64_t{1} << 18) return 0;
  std::vector<float> v(static_cast<size_t>(largest));
  DgcEncodeArgs args;
  args.table = layouts.table;
  args.codes = layouts.all_codes();
  args.control = &control;
  args.v = v.data();
  args.header = want;
  args.message = message.data();
  args.coded = came.data();
  encode_message(args, 1);
  require(check_message(message.data(), want, 0, layouts.table).kind == WireFaultKind::none);
  require(decode(layouts, control, came) == message);
  return 0;
}
