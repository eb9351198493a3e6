#include <turbojpeg.h>

#include <cstring>
#include <memory>

#include "data/images/decode_image.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// A warning means that some pixels are made up. This one does not: some programs pad between markers, and all pixels
// are there.
bool harmless(const char* warning) { return std::strstr(warning, "extraneous bytes before marker") != nullptr; }

// JPEG files with CMYK come from Adobe's programs, which store inverted inks: 255 is no ink.
void cmyk_to_rgb(const std::vector<uint8_t>& cmyk, uint8_t* rgb) {
  for (size_t i = 0; i < cmyk.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>((cmyk[i + c] * cmyk[i + 3] + 127) / 255);
  }
}

}  // namespace

void decode_jpeg(std::span<const uint8_t> bytes, const std::string& name, RgbImage& out) {
  // Each file gets a new decompressor: a used one keeps the tables of the file before, even of a damaged file, and
  // would decode a file without tables with them.
  const std::unique_ptr<void, decltype(&tjDestroy)> decompressor(tjInitDecompress(), tjDestroy);
  const tjhandle handle = decompressor.get();
  DGC_CHECK(handle != nullptr, "tjInitDecompress");
  int width = 0, height = 0, subsampling = 0, colours = 0;
  const bool failed =
      tjDecompressHeader3(handle, bytes.data(), bytes.size(), &width, &height, &subsampling, &colours) != 0;
  if (failed && tjGetErrorCode(handle) == TJERR_FATAL) {
    throw_user_error("{}: the JPEG file is corrupt or truncated: {}", name, tjGetErrorStr2(handle));
  }
  if (width < 1 || height < 1) throw_user_error("{}: the JPEG file is corrupt or truncated: it has no image", name);
  check_image_size(height, width, name);
  out.height = height;
  out.width = width;
  const auto pixels = static_cast<size_t>(height) * static_cast<size_t>(width);
  out.pixels.resize(pixels * 3);

  const bool cmyk = colours == TJCS_CMYK || colours == TJCS_YCCK;
  std::vector<uint8_t> inks(cmyk ? pixels * 4 : 0);
  uint8_t* to = cmyk ? inks.data() : out.pixels.data();
  // LIMITSCANS: a small progressive file could otherwise keep a core busy for minutes.
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  if (tjDecompress2(handle, bytes.data(), bytes.size(), to, width, 0, height, cmyk ? TJPF_CMYK : TJPF_RGB, flags) !=
          0 &&
      (tjGetErrorCode(handle) == TJERR_FATAL || !harmless(tjGetErrorStr2(handle)))) {
    throw_user_error("{}: the JPEG file is corrupt or truncated: {}", name, tjGetErrorStr2(handle));
  }
  if (cmyk) cmyk_to_rgb(inks, out.pixels.data());
}

}  // namespace dgc
