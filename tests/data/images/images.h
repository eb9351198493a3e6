#pragma once

#include <spng.h>
#include <turbojpeg.h>

#include <cstdlib>

#include "tests/data/fixtures.h"

// JPEG and PNG files made by the libraries themselves.
namespace dgc {

inline Bytes jpeg_bytes(const Bytes& pixels, int width, int height, TJPF format, TJSAMP sampling, int flags = 0) {
  const tjhandle handle = tjInitCompress();
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(handle, pixels.data(), width, 0, height, format, &memory, &size, sampling, 95, flags) == 0);
  const Bytes out(memory, memory + size);
  tjFree(memory);
  tjDestroy(handle);
  return out;
}

inline Bytes rgb_jpeg(const Bytes& rgb, int width, int height) {
  return jpeg_bytes(rgb, width, height, TJPF_RGB, TJSAMP_444);
}

struct PngKind {
  spng_color_type colours = SPNG_COLOR_TYPE_TRUECOLOR;
  uint8_t bits = 8;
};

inline Bytes png_bytes(const Bytes& raw, uint32_t width, uint32_t height, const PngKind& kind = {},
                       spng_plte* palette = nullptr) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = width;
  header.height = height;
  header.color_type = static_cast<uint8_t>(kind.colours);
  header.bit_depth = kind.bits;
  REQUIRE(spng_set_ihdr(context, &header) == 0);
  if (palette != nullptr) REQUIRE(spng_set_plte(context, palette) == 0);
  REQUIRE(spng_encode_image(context, raw.data(), raw.size(), SPNG_FMT_RAW, SPNG_ENCODE_FINALIZE) == 0);
  size_t size = 0;
  int error = 0;
  auto* memory = static_cast<uint8_t*>(spng_get_png_buffer(context, &size, &error));
  REQUIRE(error == 0);
  const Bytes out(memory, memory + size);
  std::free(memory);
  spng_ctx_free(context);
  return out;
}

inline Bytes solid(int width, int height, uint8_t r, uint8_t g, uint8_t b) {
  Bytes out;
  for (int i = 0; i < width * height; ++i) out.insert(out.end(), {r, g, b});
  return out;
}

}  // namespace dgc
