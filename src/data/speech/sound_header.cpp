#include "data/speech/sound_header.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace dgc {
namespace {

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_wav(std::string_view file) { return file.starts_with("RIFF") && file.substr(0, 12).ends_with("WAVE"); }
bool is_sphere(std::string_view file) { return file.starts_with("NIST_1A\n"); }

uint64_t word_at(std::string_view file, size_t at) {
  uint64_t word = 0;
  for (size_t i = 4; i-- > 0;) word = word << 8 | static_cast<uint8_t>(file[at + i]);
  return word;
}

uint64_t beyond(std::string_view file, uint64_t end) { return end > file.size() ? end - file.size() : 0; }

// A WAV file is a sequence of chunks up to "data". A chunk is a name, a length and as many bytes, padded to an even
// number.
uint64_t wav_missing(std::string_view file) {
  uint64_t at = 12;
  while (at + 8 <= file.size()) {
    const uint64_t length = word_at(file, at + 4);
    if (file.substr(at, 4) == "data") {
      const bool unknown = length == 0 || length >= 0x7fffff00;  // lengths that programs write into a pipe
      return unknown ? 0 : beyond(file, at + 8 + length);
    }
    at += 8 + length + length % 2;
  }
  return 0;
}

// A SPHERE header is "NIST_1A\n   1024\n" and lines like "sample_count -i 64000"; the samples begin at byte 1024.
std::optional<uint64_t> sphere_field(std::string_view header, std::string_view name) {
  const size_t at = header.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const char* first = header.data() + at + name.size();
  uint64_t value = 0;
  const auto end = std::from_chars(first, header.data() + header.size(), value);
  return end.ec == std::errc{} && value <= UINT32_MAX ? std::optional(value) : std::nullopt;
}

uint64_t sphere_missing(std::string_view file) {
  constexpr size_t kHeader = 1024;
  const std::string_view header = file.substr(0, kHeader);
  const auto count = sphere_field(header, "\nsample_count -i ");
  const uint64_t bytes = sphere_field(header, "\nsample_n_bytes -i ").value_or(1);
  const uint64_t channels = sphere_field(header, "\nchannel_count -i ").value_or(1);
  // libsndfile refuses larger numbers, which would overflow here.
  if (!count || bytes > 8 || channels > 1024) return 0;
  return beyond(file, kHeader + *count * bytes * channels);
}

}  // namespace

bool is_sound(std::span<const uint8_t> bytes) {
  const std::string_view file = text_of(bytes);
  return is_wav(file) || is_sphere(file) || file.starts_with("fLaC");
}

uint64_t missing_bytes(std::span<const uint8_t> bytes) {
  const std::string_view file = text_of(bytes);
  if (is_wav(file)) return wav_missing(file);
  return is_sphere(file) ? sphere_missing(file) : 0;
}

}  // namespace dgc
