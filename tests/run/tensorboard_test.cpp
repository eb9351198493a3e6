#include "run/tensorboard.h"

#include <catch.hpp>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "tensor/errors.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

using test::TempRun;

// A reader of its own: bit by bit, from the polynomial 0x1EDC6F41 of RFC 3720, shifting left on reflected bytes.
uint32_t slow_crc32c(const std::string& bytes) {
  auto reflect = [](uint32_t value, int bits) {
    uint32_t out = 0;
    for (int i = 0; i < bits; ++i) out |= ((value >> i) & 1u) << (bits - 1 - i);
    return out;
  };
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) {
    crc ^= reflect(static_cast<unsigned char>(c), 8) << 24;
    for (int i = 0; i < 8; ++i) crc = (crc & 0x80000000u) != 0 ? (crc << 1) ^ 0x1edc6f41u : crc << 1;
  }
  return reflect(~crc, 32);
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

template <typename T>
T number(const std::string& bytes, size_t at) {
  T value;
  REQUIRE(at + sizeof(T) <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> out;
  for (size_t at = 0; at < file.size();) {
    const auto length = number<uint64_t>(file, at);
    REQUIRE(unmask(number<uint32_t>(file, at + 8)) == slow_crc32c(file.substr(at, 8)));
    out.push_back(file.substr(at + 12, length));
    REQUIRE(unmask(number<uint32_t>(file, at + 12 + length)) == slow_crc32c(out.back()));
    at += 16 + length;
  }
  return out;
}

// Field number -> its bytes (varints as 8 bytes). Each field occurs once in what we write.
std::map<uint64_t, std::string> fields(const std::string& message) {
  std::map<uint64_t, std::string> out;
  size_t at = 0;
  auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    const uint64_t type = tag & 7;
    if (type == 0) {
      const uint64_t value = varint();
      out[tag >> 3] = std::string(reinterpret_cast<const char*>(&value), sizeof(value));
      continue;
    }
    const uint64_t length = type == 1 ? 8 : type == 5 ? 4 : varint();
    out[tag >> 3] = message.substr(at, length);
    at += length;
  }
  return out;
}

std::string only_event_file(const TempRun& run) {
  std::optional<std::string> name;
  for (const auto& entry : std::filesystem::directory_iterator(run.path())) {
    CHECK(entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0);
    REQUIRE(!name);
    name = entry.path().filename().string();
  }
  REQUIRE(name);
  return *name;
}

}  // namespace

TEST_CASE("CRC-32C has the check values of RFC 3720 B.4") {
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(crc32c("") == 0u);
}

TEST_CASE("an event file holds its version and the scalars") {
  TempRun run;
  TensorBoardWriter writer(run.path(), 0);
  writer.scalar("train/loss", 1, 0.5);
  writer.scalar("train/loss", 300, kNoNumber);  // left out
  writer.scalar("test/accuracy", 1234567890123, -2.25);

  const auto events = records(run.read(only_event_file(run)));
  REQUIRE(events.size() == 4);
  CHECK(fields(events[0])[3] == "brain.Event:2");
  CHECK(number<double>(fields(events[0])[1], 0) > 1.6e9);  // seconds since 1970

  // Whatever an attempt that saved nothing has written from this step on does not count.
  auto event = fields(events[1]);
  CHECK(number<uint64_t>(event[2], 0) == 1);
  CHECK(number<uint64_t>(fields(event[7])[1], 0) == 1);

  event = fields(events[2]);
  CHECK(number<uint64_t>(event[2], 0) == 1);
  auto value = fields(fields(event[5])[1]);
  CHECK(value[1] == "train/loss");
  CHECK(number<float>(value[2], 0) == 0.5f);

  event = fields(events[3]);
  CHECK(number<uint64_t>(event[2], 0) == 1234567890123u);
  value = fields(fields(event[5])[1]);
  CHECK(value[1] == "test/accuracy");
  CHECK(number<float>(value[2], 0) == -2.25f);
}

TEST_CASE("a resumed writer opens a second file that starts the session anew") {
  TempRun run;
  TensorBoardWriter first(run.path(), 0);
  const std::string first_name = only_event_file(run);
  TensorBoardWriter second(run.path(), 41);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run.path())) {
    ++files;
    const std::string name = entry.path().filename().string();
    if (name == first_name) continue;
    const auto events = records(run.read(name));
    REQUIRE(events.size() == 2);
    auto event = fields(events[1]);
    CHECK(number<uint64_t>(event[2], 0) == 42);            // forget this step and later ones
    CHECK(number<uint64_t>(fields(event[7])[1], 0) == 1);  // SessionLog.START
  }
  CHECK(files == 2);
}

TEST_CASE("an event file that cannot be written is named") {
  CHECK_THROWS_WITH(TensorBoardWriter("/nowhere", 0), Catch::Contains("/nowhere/events"));
}

}  // namespace dgc
