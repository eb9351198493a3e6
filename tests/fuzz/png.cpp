// PNG files: as they come; with the checksums of their chunks put right; and besides with the image data, which is then
// the plain scan lines, packed. Random bytes would get past neither.
#include <zlib.h>

#include "tests/fuzz/image.h"

using namespace dgc;

namespace {

constexpr size_t kMagic = 8, kSizeAt = kMagic + 8;

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::string to_big_endian(uint64_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

std::string packed(const std::string& lines) {
  uLongf bytes = compressBound(lines.size());
  std::string out(bytes, '\0');
  fuzz::require(compress2(reinterpret_cast<Bytef*>(out.data()), &bytes, reinterpret_cast<const Bytef*>(lines.data()),
                          lines.size(), 1) == Z_OK);
  out.resize(bytes);
  return out;
}

// Length, type, data and checksum of each chunk; the last one may be cut.
std::string put_right(const std::string& file, bool pack) {
  std::string out = file.substr(0, kMagic);
  for (size_t at = kMagic; at + 8 <= file.size();) {
    const size_t length = std::min<size_t>(big_endian(file, at), file.size() - at - 8);
    const std::string type = file.substr(at + 4, 4), data = file.substr(at + 8, length);
    const std::string body = type + (pack && type == "IDAT" ? packed(data) : data);
    out += to_big_endian(body.size() - 4) + body;
    out += to_big_endian(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
    at += 8 + length + 4;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  if (size >= kSizeAt + 8) {
    const uint64_t height = big_endian(file, kSizeAt), width = big_endian(file, kSizeAt + 4);
    if (fuzz::takes_long(height, width)) return 0;
  }
  for (const std::string& one : {file, put_right(file, false), put_right(file, true)}) fuzz::check_image(one);
  return 0;
}
