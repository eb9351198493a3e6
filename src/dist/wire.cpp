#include "dist/wire.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <string>

#include "tensor/errors.h"

namespace dgc {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and is written by memcpy");

constexpr uint32_t kMagic = 0x4d434744;  // "DGCM"
constexpr uint16_t kVersion = 1;

struct Header {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t values = 0;
  uint32_t worker = 0;
  uint32_t tensors = 0;
  uint64_t step = 0;
  uint64_t payload_bytes = 0;
  uint64_t entries = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(Header) == kWireHeaderBytes && offsetof(Header, checksum) == 40);

size_t align(size_t position, size_t to) { return (position + to - 1) / to * to; }

Header header_of(const WireLayout& layout, uint64_t step, uint32_t worker) {
  Header header;
  header.values = static_cast<uint16_t>(layout.values());
  header.worker = worker;
  header.tensors = static_cast<uint32_t>(layout.tensors().size());
  header.step = step;
  header.payload_bytes = layout.payload_bytes();
  header.entries = static_cast<uint64_t>(layout.entries());
  return header;
}

uint64_t checksum_of(const Header& header, std::span<const std::byte> payload) {
  const uint64_t seed = XXH3_64bits(&header, offsetof(Header, checksum));
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

// What is wrong with a tensor's indices; empty when nothing is.
std::string index_fault(const WireTensor& t, std::span<const std::byte> payload) {
  const std::byte* ends = payload.data() + t.block_ends_at;
  const std::byte* offsets = payload.data() + t.offsets_at;
  const int64_t blocks = dgc_blocks(t.numel);
  int64_t begin = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    uint32_t end = 0;
    std::memcpy(&end, ends + b * 4, sizeof(end));
    if (end < begin || end > t.k) return fmt::format("block {} ends at entry {}", b, end);
    const int64_t block_numel = std::min(kDgcBlock, t.numel - b * kDgcBlock);
    int64_t previous = -1;
    for (; begin < end; ++begin) {
      uint16_t offset = 0;
      std::memcpy(&offset, offsets + begin * 2, sizeof(offset));
      if (offset <= previous) return fmt::format("entry {} is out of order", begin);
      previous = offset;
    }
    if (previous >= block_numel) return fmt::format("entry {} lies outside the tensor", begin - 1);
  }
  return begin == t.k ? "" : fmt::format("{} entries instead of {}", begin, t.k);
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

void seal_message(std::span<std::byte> message, const WireLayout& layout, uint64_t step, uint32_t worker) {
  DGC_CHECK(message.size() == layout.message_bytes(), "message size");
  Header header = header_of(layout, step, worker);
  header.checksum = checksum_of(header, message.subspan(kWireHeaderBytes));
  std::memcpy(message.data(), &header, sizeof(header));
}

std::span<const std::byte> open_message(std::span<const std::byte> message, const WireLayout& layout, uint64_t step,
                                        uint32_t worker) {
  const auto fail = [&](const std::string& what) {
    throw_user_error("message of worker {} in step {}: {}", worker, step, what);
  };
  if (message.size() != layout.message_bytes()) {
    fail(fmt::format("{} bytes instead of {}", message.size(), layout.message_bytes()));
  }
  Header got;
  std::memcpy(&got, message.data(), sizeof(got));
  const Header want = header_of(layout, step, worker);
  const auto payload = message.subspan(kWireHeaderBytes);
  if (got.magic != want.magic) fail("it does not start like a message (wrong magic number)");
  if (got.version != want.version) fail(fmt::format("version {} instead of {}", got.version, want.version));
  if (got.checksum != checksum_of(got, payload)) fail("the checksum does not match: it was damaged on its way");
  if (got.step != want.step) fail(fmt::format("it is stale, from step {}", got.step));
  if (got.worker != want.worker) fail(fmt::format("it comes from worker {}", got.worker));
  if (got.values != want.values || got.tensors != want.tensors || got.payload_bytes != want.payload_bytes ||
      got.entries != want.entries) {
    fail("it was packed for another model, sparsity or value type; do all ranks run the same config?");
  }
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const std::string fault = index_fault(layout.tensors()[i], payload);
    if (!fault.empty()) fail(fmt::format("tensor {}: {}", i, fault));
  }
  return payload;
}

}  // namespace dgc
