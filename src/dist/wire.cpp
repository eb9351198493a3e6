#include "dist/wire.h"

#include "tensor/errors.h"

namespace dgc {
namespace {

size_t align(size_t position, size_t to) { return (position + to - 1) / to * to; }

std::string what_is_wrong(const WireFault& fault) {
  switch (fault.kind) {
    case WireFaultKind::none:
      return "nothing is wrong";
    case WireFaultKind::magic:
      return "it does not start like a message (wrong magic number)";
    case WireFaultKind::version:
      return fmt::format("version {} instead of {}; do all ranks run the same program?", fault.found, kWireVersion);
    case WireFaultKind::checksum:
      return "the checksum does not match: it was damaged on its way";
    case WireFaultKind::stale:
      return fmt::format("it is stale, from step {}", fault.found);
    case WireFaultKind::worker:
      return fmt::format("it comes from worker {}", fault.found);
    case WireFaultKind::layout:
      return "it was packed for another model, sparsity or value type; do all ranks run the same config?";
    case WireFaultKind::indices:
      return fmt::format("tensor {}: its indices are out of order or lie outside it", fault.found);
  }
  throw InternalError("a fault without words");
}

}  // namespace

WireLayout::WireLayout(std::vector<WireTensor> tensors, WireValues values)
    : tensors_(std::move(tensors)), values_(values) {
  const auto value_bytes = static_cast<size_t>(wire_value_bytes(values));
  size_t at = 0;
  for (WireTensor& t : tensors_) {
    DGC_CHECK(t.k >= 1 && t.k <= t.numel && t.numel < int64_t{1} << 32, "a tensor that no message can carry");
    t.block_ends_at = align(at, 4);
    t.offsets_at = t.block_ends_at + static_cast<size_t>(dgc_blocks(t.numel)) * 4;
    t.values_at = align(t.offsets_at + static_cast<size_t>(t.k) * 2, value_bytes);
    at = t.values_at + static_cast<size_t>(t.k) * value_bytes;
    entries_ += t.k;
  }
  payload_bytes_ = align(at, 16);
}

WireHeader WireLayout::header(uint32_t worker) const {
  WireHeader header;
  header.values = static_cast<uint16_t>(values_);
  header.worker = worker;
  header.tensors = static_cast<uint32_t>(tensors_.size());
  header.payload_bytes = payload_bytes_;
  header.entries = static_cast<uint64_t>(entries_);
  return header;
}

std::string describe(const WireFault& fault, uint64_t step) {
  return fmt::format("message of worker {} in step {}: {}", fault.worker, step, what_is_wrong(fault));
}

}  // namespace dgc
