#include "dist/wire.h"

#include "dist/wire_sizes.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Places the arrays of a payload one after another.
class Placer {
 public:
  size_t place(int64_t count, size_t element_bytes) {
    align(element_bytes);
    const size_t at = used_;
    used_ += static_cast<size_t>(count) * element_bytes;
    return at;
  }
  void align(size_t to) { used_ = (used_ + to - 1) / to * to; }
  size_t used() const { return used_; }

 private:
  size_t used_ = 0;
};

int64_t words_of(int64_t bits) { return (bits + 31) / 32; }

void place(WireTensor& t, WireFormat format, Placer& placer) {
  placer.align(4);
  t.high_at = placer.used();
  t.words = t.k;
  switch (format.indices) {
    case WireIndices::block16:
      placer.place(dgc_blocks(t.numel), 4);
      break;
    case WireIndices::run16:
      t.words = run16_words(t.numel, t.k);
      break;
    case WireIndices::rice:
      t.low_bits = rice_low_bits(t.numel, t.k);
      t.words = words_of(rice_high_bits(t.numel, t.k, t.low_bits));
      placer.place(t.words, 4);
      break;
    case WireIndices::int32:
      break;
  }
  t.scale_at = placer.place(has_scale(format.values) ? 1 : 0, 4);
  switch (format.indices) {
    case WireIndices::block16:
      t.low_at = placer.place(t.k, 2);
      break;
    case WireIndices::int32:
      t.low_at = placer.place(t.k, 4);
      break;
    case WireIndices::run16:
      t.low_at = placer.place(t.words, 2);
      break;
    case WireIndices::rice:
      t.low_at = placer.place(words_of(t.k * t.low_bits), 4);
      break;
  }
  t.values_at = placer.place(t.k, static_cast<size_t>(wire_value_bytes(format.values)));
}

// The two format bytes of a received header may hold any values.
std::string name_of(uint64_t code) {
  const uint64_t values = code & 0xff, indices = code >> 8;
  if (values >= kWireValueNames.size() || indices >= kWireIndexNames.size()) return "an unknown format";
  return fmt::format("{}+{}", kWireValueNames[values], kWireIndexNames[indices]);
}

std::string what_is_wrong(const WireFault& fault) {
  switch (fault.kind) {
    case WireFaultKind::none:
      return "nothing is wrong";
    case WireFaultKind::magic:
      return "it does not start like a message (wrong magic number)";
    case WireFaultKind::version:
      return fmt::format("version {} instead of {}; do all ranks run the same program?", fault.found, kWireVersion);
    case WireFaultKind::format:
      return fmt::format("it travels as {}, which is not this rank's exchange.wire; do all ranks run the same config?",
                         name_of(fault.found));
    case WireFaultKind::checksum:
      return "the checksum does not match: it was damaged on its way";
    case WireFaultKind::stale:
      return fmt::format("it is stale, from step {}", fault.found);
    case WireFaultKind::worker:
      return fmt::format("it comes from worker {}", fault.found);
    case WireFaultKind::layout:
      return "it was packed for another model or sparsity; do all ranks run the same config?";
    case WireFaultKind::indices:
      return fmt::format("tensor {}: its indices are out of order or lie outside it", fault.found);
  }
  throw InternalError("a fault without words");
}

}  // namespace

WireLayout::WireLayout(std::vector<WireTensor> tensors, WireFormat format)
    : tensors_(std::move(tensors)), format_(format) {
  Placer placer;
  for (WireTensor& t : tensors_) {
    DGC_CHECK(t.k >= 1 && t.k <= t.numel && t.numel < int64_t{1} << 32, "a tensor that no message can carry");
    place(t, format, placer);
    entries_ += t.k;
  }
  placer.align(16);
  payload_bytes_ = placer.used();
}

WireHeader wire_header(const WireLayout& canonical, WireFormat format, uint32_t worker) {
  DGC_CHECK(canonical.format() == kCanonicalWire, "headers speak of the canonical message");
  WireHeader header;
  header.values = format.values;
  header.indices = format.indices;
  header.worker = worker;
  header.tensors = static_cast<uint32_t>(canonical.tensors().size());
  header.payload_bytes = canonical.payload_bytes();
  header.entries = static_cast<uint64_t>(canonical.entries());
  return header;
}

std::string wire_format_name(WireFormat format) { return name_of(wire_format_code(format.values, format.indices)); }

std::string describe(const WireFault& fault, uint64_t step) {
  return fmt::format("message of worker {} in step {}: {}", fault.worker, step, what_is_wrong(fault));
}

}  // namespace dgc
