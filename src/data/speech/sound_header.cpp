#include "data/speech/sound_header.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace dgc {
namespace {

std::string read(const SoundBytes& file, uint64_t at, size_t count) {
  std::string bytes(count, '\0');
  bytes.resize(file.read(at, bytes.data(), count));
  return bytes;
}

bool is_wav(std::string_view start) { return start.starts_with("RIFF") && start.substr(0, 12).ends_with("WAVE"); }
bool is_sphere(std::string_view start) { return start.starts_with("NIST_1A\n"); }

uint64_t word_at(std::string_view bytes, size_t at) {
  uint64_t word = 0;
  for (size_t i = 4; i-- > 0;) word = word << 8 | static_cast<uint8_t>(bytes[at + i]);
  return word;
}

std::string word_of(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

uint64_t beyond(uint64_t size, uint64_t end) { return end > size ? end - size : 0; }

// A WAV file is a sequence of chunks up to "data". A chunk is a name, a length and as many bytes, padded to an even
// number. "fact" is the number of samples of compressed ones.
SoundParts wav_parts(const SoundBytes& file) {
  constexpr size_t kChunkHeader = 8;
  constexpr uint64_t kMostOfFormat = 4096;  // it has at most some 50 bytes, and a few words for compressed samples
  std::string head = "RIFF....WAVE";
  const std::string start = read(file, 0, head.size());
  const bool size_is_right = start.size() == head.size() && word_at(start, 4) + 8 == file.size;
  SoundParts parts;
  uint64_t at = head.size();
  while (at + kChunkHeader <= file.size) {
    const std::string header = read(file, at, kChunkHeader);
    if (header.size() < kChunkHeader) break;
    const std::string_view name = std::string_view(header).substr(0, 4);
    const uint64_t length = word_at(header, 4), rest = file.size - at - kChunkHeader;
    if (name == "data") {
      // Lengths that programs, as SoX, write into a pipe. With 0, they do not know the file's size either.
      const bool unknown = (length == 0 && !size_is_right) || length >= 0x7fff0000;
      parts.body = at + kChunkHeader;
      parts.body_bytes = unknown ? rest : std::min(length, rest);
      // Without a length libsndfile would take the samples for further chunks, and so it is told one here.
      head += "data" + word_of(std::min<uint64_t>(parts.body_bytes, UINT32_MAX));
      parts.missing = unknown ? 0 : beyond(rest, length);
      break;
    }
    const uint64_t padded = length + length % 2;
    if ((name == "fmt " || name == "fact") && padded <= std::min(rest, kMostOfFormat)) {
      head += header + read(file, at + kChunkHeader, padded);
    }
    at += kChunkHeader + padded;
  }
  const uint64_t riff = head.size() - 8 + parts.body_bytes;
  head.replace(4, 4, word_of(riff));
  parts.head.assign(head.begin(), head.end());
  return parts;
}

// A SPHERE header is "NIST_1A\n   1024\n" and lines like "sample_count -i 64000"; the samples begin at byte 1024.
constexpr size_t kSphereHeader = 1024;

std::optional<uint64_t> sphere_field(std::string_view header, std::string_view name) {
  const size_t at = header.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const char* first = header.data() + at + name.size();
  uint64_t value = 0;
  const auto end = std::from_chars(first, header.data() + header.size(), value);
  return end.ec == std::errc{} && value <= UINT32_MAX ? std::optional(value) : std::nullopt;
}

uint64_t sphere_missing(const SoundBytes& file) {
  const std::string header = read(file, 0, kSphereHeader);
  const auto count = sphere_field(header, "\nsample_count -i ");
  const uint64_t bytes = sphere_field(header, "\nsample_n_bytes -i ").value_or(1);
  const uint64_t channels = sphere_field(header, "\nchannel_count -i ").value_or(1);
  // libsndfile refuses larger numbers, which would overflow here.
  if (!count || bytes > 8 || channels > 1024) return 0;
  return beyond(file.size, kSphereHeader + *count * bytes * channels);
}

}  // namespace

bool is_sound(const SoundBytes& file) {
  const std::string start = read(file, 0, 12);
  return is_wav(start) || is_sphere(start) || start.starts_with("fLaC");
}

bool is_shortened(const SoundBytes& file) {
  const std::string header = read(file, 0, kSphereHeader);
  const size_t coding = header.find("\nsample_coding -s");
  if (!is_sphere(header) || coding == std::string::npos) return false;
  return header.substr(0, header.find('\n', coding + 1)).find("embedded-shorten", coding) != std::string::npos;
}

SoundParts parts_of(const SoundBytes& file) {
  const std::string start = read(file, 0, 12);
  if (is_wav(start)) return wav_parts(file);
  return {{}, 0, file.size, is_sphere(start) ? sphere_missing(file) : 0};
}

}  // namespace dgc
