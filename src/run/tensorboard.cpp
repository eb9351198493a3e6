#include "run/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>

namespace dgc {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied into the file as they lie in memory");

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}

// TFRecord stores checksums of checksums, so it rotates them first.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

template <typename T>
std::string raw(T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  return {bytes.begin(), bytes.end()};
}

// Protocol-buffer encoding: a field starts with (number << 3 | wire type).
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out + static_cast<char>(value);
}
std::string varint_field(unsigned number, uint64_t value) { return varint(number << 3 | 0) + varint(value); }
std::string double_field(unsigned number, double value) { return varint(number << 3 | 1) + raw(value); }
std::string bytes_field(unsigned number, const std::string& value) {
  return varint(number << 3 | 2) + varint(value.size()) + value;
}
std::string float_field(unsigned number, float value) { return varint(number << 3 | 5) + raw(value); }

std::string event_head(int64_t step) {  // Event: wall_time = 1, step = 2
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return double_field(1, now.count()) + varint_field(2, static_cast<uint64_t>(step));
}

std::filesystem::path new_file_name(const std::filesystem::path& run) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (int n = 0;; ++n) {
    auto path = run / fmt::format("events.out.tfevents.{:010}.{}.{}", seconds, getpid(), n);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 255u];
  return ~crc;
}

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& run, int64_t step) : file_(new_file_name(run)) {
  write_event(event_head(0) + bytes_field(3, "brain.Event:2"));  // file_version = 3
  const std::string start = varint_field(1, 1);                  // SessionLog: status = START
  write_event(event_head(step + 1) + bytes_field(7, start));
}

void TensorBoardWriter::scalar(const std::string& tag, int64_t step, double value) {
  if (!std::isfinite(value)) return;
  // Event.summary = 5, Summary.value = 1, Summary.Value: tag = 1, simple_value = 2
  const std::string entry = bytes_field(1, tag) + float_field(2, static_cast<float>(value));
  write_event(event_head(step) + bytes_field(5, bytes_field(1, entry)));
}

void TensorBoardWriter::write_event(const std::string& event) {
  const std::string length = raw(uint64_t{event.size()});
  file_.append(length + raw(masked_crc(length)) + event + raw(masked_crc(event)));
}

}  // namespace dgc
